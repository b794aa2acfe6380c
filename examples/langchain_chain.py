"""A LangChain chain: prompt, model, parser, streamed token by token."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import LLMResult
from langchain_core.prompts import ChatPromptTemplate

from examples.service import MODEL, report, service
from langchain_cerebras_ext import ChatCerebras


class LastMessage(BaseCallbackHandler):
    """Keeps the whole message of the last answer, which the parser reduces to its text."""

    message: Any = None

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        self.message = getattr(response.generations[0][0], "message", None)


def main() -> str:
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Answer in one sentence, from this text:\n{text}"),
            ("human", "{question}"),
        ]
    )
    chain = prompt | ChatCerebras(model=MODEL) | StrOutputParser()

    question = {
        "text": "A wafer-scale engine is one chip as large as a dinner plate. It keeps a model in its own memory.",
        "question": "How large is a wafer-scale engine?",
    }
    last = LastMessage()
    answer = ""
    for token in chain.stream(question, config={"callbacks": [last]}):
        print(token, end="", flush=True)
        answer += token
    print()
    usage, timing = last.message.usage_metadata, last.message.response_metadata["time_info"]
    report(usage["input_tokens"], usage["output_tokens"], timing["completion_time"])
    return answer


if __name__ == "__main__":
    with service() as who:
        print(who)
        main()
