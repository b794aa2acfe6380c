"""A LangChain agent that calls a tool and answers with its result."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from examples.service import MODEL, report, service
from langchain_cerebras_ext import ChatCerebras

STOCK = {"gaskets": 140, "bearings": 37}


@tool
def stock_level(part: str) -> str:
    """Return how many pieces of a part are in stock.

    Args:
        part: Name of the part, for example gaskets.
    """
    return f"{STOCK.get(part.lower(), 0)} {part} are in stock"


def main() -> str:
    agent = create_agent(ChatCerebras(model=MODEL), tools=[stock_level])
    question = {"messages": [("human", "How many bearings are in stock?")]}

    messages = []
    for step in agent.stream(question, stream_mode="updates"):
        for update in step.values():
            messages += update["messages"]
    for message in messages:
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                print(f"calls {call['name']}({call['args']})")
        if isinstance(message, ToolMessage):
            print(f"the tool says: {message.text}")
    answer = messages[-1]
    print(answer.text)
    used, timing = answer.usage_metadata, answer.response_metadata["time_info"]
    report(used["input_tokens"], used["output_tokens"], timing["completion_time"])
    return str(answer.text)


if __name__ == "__main__":
    with service() as who:
        print(who)
        main()
