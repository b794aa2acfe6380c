"""A LlamaIndex query over documents with a BM25 retriever: an answer from the passage that fits, and its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core import Document, SimpleDirectoryReader
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent
from llama_index.core.node_parser import MarkdownNodeParser
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.retrievers.bm25 import BM25Retriever
from pydantic import Field

from examples.service import MODEL, report, service
from llamaindex_cerebras_ext import Cerebras

DOCS = Path(__file__).resolve().parent.parent / "docs"
TOP_K = 2


class LastAnswer(BaseEventHandler):
    """Keeps the model's own answer to the last query: usage and timing are in it."""

    raw: dict[str, Any] = Field(default_factory=dict)

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        if isinstance(event, LLMChatEndEvent) and event.response is not None:
            self.raw = event.response.raw


def ask(documents: list[Document], question: str) -> tuple[str, str]:
    """Answer a question from the best passages of the documents; returns the answer and the first passage's file."""
    nodes = MarkdownNodeParser().get_nodes_from_documents(documents)
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=min(TOP_K, len(nodes) - 1))
    llm = Cerebras(model=MODEL)
    response = RetrieverQueryEngine.from_args(retriever, llm=llm).query(question)
    return str(response), str(response.source_nodes[0].metadata["file_name"])


def main() -> list[str]:
    question = "When is the logger silent?"
    own = SimpleDirectoryReader(str(DOCS), required_exts=[".md"]).load_data()
    swapped = [
        Document(text=text, metadata={"file_name": name})
        for name, text in {
            "forest.md": "# Winter\nThe logger is silent when it snows: the saws stand still.",
            "garden.md": "# Garden\nTomatoes want sun and a sheltered wall.",
            "library.md": "# Library\nA book may be kept for four weeks.",
        }.items()
    ]

    last = LastAnswer()
    get_dispatcher().add_event_handler(last)
    answers = []
    print(f"Question: {question}")
    for name, documents in (("this project's docs", own), ("other documents", swapped)):
        answer, source = ask(documents, question)
        print(f"From {name} ({source}): {answer}")
        usage = last.raw["usage"]
        report(usage["prompt_tokens"], usage["completion_tokens"], last.raw["time_info"]["completion_time"])
        answers.append(answer)
    return answers


if __name__ == "__main__":
    with service() as who:
        print(who)
        main()
