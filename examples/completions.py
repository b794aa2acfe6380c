"""The text-completion endpoint, from LangChain and from LlamaIndex."""

from __future__ import annotations

from examples.service import MODEL, report, service
from langchain_cerebras_ext import CerebrasLLM
from llamaindex_cerebras_ext import CerebrasCompletion

PROMPT = """Coffee is ground before it is brewed. Tea steeps for three minutes.

Question: How long does tea steep?
Answer:"""


def main() -> list[str]:
    llm = CerebrasLLM(model=MODEL, max_tokens=40, temperature=0)
    result = llm.generate([PROMPT])
    generation = result.generations[0][0]
    print(f"{PROMPT}{generation.text}")
    info = generation.generation_info or {}
    report(
        info["token_usage"]["prompt_tokens"],
        info["token_usage"]["completion_tokens"],
        info["time_info"]["completion_time"],
    )

    completion = CerebrasCompletion(model=MODEL, max_tokens=40, temperature=0)
    print(PROMPT, end="")
    for response in completion.stream_complete(PROMPT):
        print(response.delta, end="", flush=True)
    print()
    usage, timing = response.raw["usage"], response.raw["time_info"]
    report(usage["prompt_tokens"], usage["completion_tokens"], timing["completion_time"])
    return [generation.text, response.text]


if __name__ == "__main__":
    with service() as who:
        print(who)
        main()
