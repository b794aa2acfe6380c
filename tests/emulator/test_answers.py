"""Answers in words: retrieval prompts of both frameworks, refining, condensing, memory, agents that work in text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cerebras_ext.emulator import Emulator
from tests.emulator.support import MODEL, complete, say, user

DOCUMENTS = {
    "emulator": "# The emulator\n\nIt listens on loopback. The default port of the emulator is 8080.\n\n"
    "It was written for tests, and it answers without a key.",
    "client": "# The client\n\nThe client retries a refused request twice. It waits at least half a second.\n\n"
    "- Timeouts: sixty seconds for an answer, five to connect.\n- Keys are read from the environment.",
    "history": "# History\n\nThe Eiffel Tower was finished in 1889. Gustave Eiffel's company built it for a fair.",
}
CONTEXT = "\n\n".join(f"file_path: docs/{name}.md\n\n{text}" for name, text in DOCUMENTS.items())

ANSWERS = [
    ("What is the default port of the emulator?", "8080"),
    ("How often does the client retry a request?", "twice"),
    ("How long are the timeouts?", "sixty seconds"),
    ("Where are keys read from?", "environment"),
    ("When was the Eiffel Tower finished?", "1889"),
    ("Who built the Eiffel Tower?", "Gustave Eiffel"),
]

LLAMA_QA = """Context information is below.
---------------------
{context}
---------------------
Given the context information and not prior knowledge, answer the query.
Query: {question}
Answer: """
LANGCHAIN_QA = """You are an assistant for question-answering tasks. Use the following pieces of retrieved context to \
answer the question. If you don't know the answer, just say that you don't know. Use three sentences maximum and keep \
the answer concise.
Question: {question}
Context: {context}
Answer:"""
PLAIN_QA = "Answer the question based only on the following context:\n{context}\n\nQuestion: {question}\n"
TAGGED_QA = "<context>\n{context}\n</context>\n\n{question}"
TEMPLATES = [LLAMA_QA, LANGCHAIN_QA, PLAIN_QA, TAGGED_QA]


@pytest.mark.parametrize(("question", "part"), ANSWERS)
@pytest.mark.parametrize("template", TEMPLATES, ids=["llama", "langchain", "plain", "tagged"])
def test_questions_are_answered_from_the_context(emu: Emulator, template: str, question: str, part: str) -> None:
    prompt = template.format(context=CONTEXT, question=question)
    said = say(emu, prompt)
    assert part in said
    assert said in CONTEXT
    assert complete(emu, prompt)["choices"][0]["text"].strip() == said


@pytest.mark.parametrize(("question", "part"), ANSWERS)
def test_the_context_may_stand_in_a_system_message(emu: Emulator, question: str, part: str) -> None:
    system = f"You are an expert. Here are the relevant documents for the context:\n\n{CONTEXT}\n\nInstruction: answer."
    assert part in say(emu, [{"role": "system", "content": system}, *user(question)])


@pytest.mark.parametrize("template", TEMPLATES, ids=["llama", "langchain", "plain", "tagged"])
def test_what_the_context_does_not_have_is_not_invented(emu: Emulator, template: str) -> None:
    said = say(emu, template.format(context=DOCUMENTS["history"], question="What colour has the sky?"))
    assert said == "The given text does not answer this."


def test_other_documents_give_another_answer(emu: Emulator) -> None:
    question = "What is the default port?"
    said = [say(emu, LLAMA_QA.format(context=f"The default port is {port}.", question=question)) for port in (80, 443)]
    assert said == ["The default port is 80.", "The default port is 443."]


REFINE = """The original query is as follows: {question}
We have provided an existing answer: {answer}
We have the opportunity to refine the existing answer (only if needed) with some more context below.
------------
{context}
------------
Given the new context, refine the original answer to better answer the query. If the context isn't useful, return the \
original answer.
Refined Answer: """
CHAT_REFINE = """You are an expert Q&A system that strictly operates in two modes when refining existing answers:
1. **Rewrite** an original answer using the new context.
2. **Repeat** the original answer if the new context isn't useful.
Never reference the original answer or context directly in your answer.
When in doubt, just repeat the original answer.
New Context: {context}
Query: {question}
Original Answer: {answer}
New Answer: """


@pytest.mark.parametrize("template", [REFINE, CHAT_REFINE], ids=["text", "chat"])
def test_refining_keeps_a_good_answer_and_replaces_a_bad_one(emu: Emulator, template: str) -> None:
    question, good = "When was the Eiffel Tower finished?", "The Eiffel Tower was finished in 1889."
    kept = template.format(question=question, answer=good, context=DOCUMENTS["client"])
    replaced = template.format(
        question=question, answer="The given text does not answer this.", context=DOCUMENTS["history"]
    )
    assert say(emu, kept) == good
    assert say(emu, replaced) == good


CONDENSE = [
    """Given a conversation (between Human and Assistant) and a follow up message from Human, rewrite the message to \
be a standalone question that captures all relevant context from the conversation.

<Chat History>
user: Where is the Eiffel Tower?
assistant: It is in Paris.

<Follow Up Message>
{question}

<Standalone question>
""",
    """Given the following conversation between a user and an AI assistant and a follow up question from user,
rephrase the follow up question to be a standalone question.

Chat History:
user: Where is the Eiffel Tower?
assistant: It is in Paris.
Follow Up Input: {question}
Standalone question:""",
]


@pytest.mark.parametrize("template", CONDENSE, ids=["tagged", "labelled"])
def test_follow_up_questions_are_condensed(emu: Emulator, template: str) -> None:
    assert say(emu, template.format(question="How tall is it?")) == "How tall is Eiffel Tower?"
    assert say(emu, template.format(question="Who is its builder?")) == "Who is Eiffel Tower's builder?"
    assert say(emu, template.format(question="What is the port?")) == "What is the port?"


def test_earlier_turns_are_remembered(emu: Emulator) -> None:
    talk = [*user("My name is Bob."), {"role": "assistant", "content": "Nice to meet you."}, *user("What is my name?")]
    assert say(emu, talk) == "My name is Bob."


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("hi", "Hello! How can I help you?"),
        ("Reply with the single word ok.", "ok"),
        ('Say "good night" please', "good night"),
        ("What is 17 * 23?", "17 * 23 = 391"),
        ("What is (1 + 2) / 0?", None),
        ("What is 2 ** 9999999?", None),
        ("Count from 3 to 5", "3, 4, 5"),
        ("Tell me a joke about cats.", "cats"),
        ("Why is grass green?", "grass"),
        ("Who are you?", "emulator"),
        ("", None),
        ("\x00", None),
        ([{"type": "text", "text": "Say 'a'"}, {"type": "text", "text": ""}], "a"),
    ],
)
def test_there_is_always_an_answer(emu: Emulator, question: Any, said: str | None) -> None:
    content = say(emu, [{"role": "user", "content": question}])
    assert content
    assert said is None or said in content


@pytest.mark.parametrize(("question", "choice"), [("Where is Paris in France?", 2), ("How do clients retry?", 1)])
def test_a_router_of_llamaindex_gets_its_choice(emu: Emulator, question: str, choice: int) -> None:
    selectors = pytest.importorskip("llama_index.core.selectors.llm_selectors")
    from llama_index.core.tools import ToolMetadata

    choices = [ToolMetadata(description="about clients and cats"), ToolMetadata(description="about France and towns")]
    selector = selectors.LLMSingleSelector.from_defaults(llm=object())
    prompt = selector._prompt.format(
        num_choices=2, context_list=selectors._build_choices_text(choices), query_str=question
    )
    parsed = selector._prompt.output_parser.parse(say(emu, prompt))
    assert [answer.choice for answer in parsed.parsed_output] == [choice]


# ---- agents that work in text ----

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_an_agent_of_llamaindex_completes(emu: Emulator) -> None:
    formatter = pytest.importorskip("llama_index.core.agent.react.formatter")
    from llama_index.core.agent.react.output_parser import ReActOutputParser
    from llama_index.core.agent.react.types import ActionReasoningStep, ObservationReasoningStep
    from llama_index.core.llms import ChatMessage
    from llama_index.core.tools import FunctionTool

    def get_weather(city: str) -> str:
        """Get the weather in a city."""
        return f"It is sunny in {city}."

    def multiply(a: int, b: int) -> int:
        """Multiply two integers."""
        return a * b

    offered = [FunctionTool.from_defaults(get_weather), FunctionTool.from_defaults(multiply)]
    tools = {tool.metadata.get_name(): tool for tool in offered}
    steps: list[Any] = []
    for _ in range(5):
        messages = formatter.ReActChatFormatter.from_defaults().format(
            offered, [ChatMessage(content="What is the weather in Oslo and what is 3 times 4?")], steps
        )
        said = say(emu, [{"role": message.role.value, "content": message.content} for message in messages])
        step = ReActOutputParser().parse(said)
        steps.append(step)
        if step.is_done:
            break
        assert isinstance(step, ActionReasoningStep)
        steps.append(ObservationReasoningStep(observation=str(tools[step.action](**step.action_input))))
    assert [step.action for step in steps if isinstance(step, ActionReasoningStep)] == ["get_weather", "multiply"]
    assert "sunny in Oslo" in steps[-1].response
    assert "12" in steps[-1].response


REACT = """Answer the following questions as best you can. You have access to the following tools:

multiply(a: int, b: int) -> int - Multiply two numbers.
search(query: str) -> str - Search the web.

Use the following format:

Question: the input question you must answer
Thought: you should always think about what to do
Action: the action to take, should be one of [multiply, search]
Action Input: the input to the action
Observation: the result of the action
... (this Thought/Action/Action Input/Observation can repeat N times)
Thought: I now know the final answer
Final Answer: the final answer to the original input question

Begin!

Question: {question}
Thought:{scratchpad}"""


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_an_agent_of_langchain_completes(emu: Emulator, endpoint: str) -> None:
    def step(scratchpad: str) -> str:
        prompt = REACT.format(question="Search for the capital of France", scratchpad=scratchpad)
        if endpoint == "chat":
            return say(emu, prompt, stop=["\nObservation"])
        return str(complete(emu, prompt, stop=["\nObservation"])["choices"][0]["text"])

    first = step("")
    assert first.split("Action: ")[1] == "search\nAction Input: the capital of France"
    last = step(f"{first}\nObservation: Paris is the capital of France.\nThought: ")
    assert last.endswith("Final Answer: Paris is the capital of France.")


def test_such_an_agent_answers_at_once_where_no_tool_fits(emu: Emulator) -> None:
    prompt = REACT.format(question="Say 'good night'", scratchpad="")
    assert say(emu, prompt).endswith("Final Answer: good night")


def test_an_agent_gives_several_arguments_as_json(emu: Emulator) -> None:
    said = say(emu, REACT.format(question="What is 3 times 4?", scratchpad=""))
    assert json.loads(said.split("Action Input: ")[1]) == {"a": 3, "b": 4}


def test_answers_do_not_depend_on_what_was_asked_before(emu: Emulator) -> None:
    first = say(emu, "What is 2 + 2?")
    complete(emu, "something else", model=MODEL)
    assert say(emu, "What is 2 + 2?") == first


@pytest.mark.parametrize("path", ["chat", "text"])
def test_a_schema_with_doubled_braces_is_followed_too(emu: Emulator, path: str) -> None:
    """LlamaIndex's PydanticOutputParser sends it so."""
    members = {"name": {"type": "string"}, "country": {"type": "string"}}
    schema = {"type": "object", "properties": members, "required": list(members)}
    doubled = json.dumps(schema).replace("{", "{{").replace("}", "}}")
    prompt = (
        f"Extract the place: Bern in Switzerland\n\n\nHere's a JSON schema to follow:\n{doubled}\n\n"
        "Output a valid JSON object but do not repeat the schema.\n"
    )
    answer = say(emu, prompt) if path == "chat" else complete(emu, prompt)["choices"][0]["text"]
    assert json.loads(answer) == {"name": "Bern", "country": "Switzerland"}
