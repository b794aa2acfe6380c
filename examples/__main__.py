"""Run all examples, one after the other."""

from __future__ import annotations

import warnings

from examples import completions, langchain_agent, langchain_chain, llamaindex_rag
from examples.service import service

EXAMPLES = {
    "LangChain: prompt | model | parser, streamed": langchain_chain.main,
    "LangChain: an agent with a tool": langchain_agent.main,
    "LlamaIndex: a question answered from documents": llamaindex_rag.main,
    "Both: the text-completion endpoint": completions.main,
}


def main() -> None:
    with service() as who:
        print(f"{who}\n")
        for title, example in EXAMPLES.items():
            print(f"== {title}")
            example()


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    main()
