"""What applications build on top: a configurable model, and an agent that calls a tool."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Bench, sync_and_async
from benchmarks.candidates import KEY, MODEL, Subject
from benchmarks.measure import Candidate, run_async
from benchmarks.scenarios import Scenario


def configurable(bench: Bench) -> None:
    """LangChain's `init_chat_model(configurable_fields="any")`, which makes a model for every call."""
    try:
        from langchain.chat_models import init_chat_model

        import langchain_cerebras_ext  # noqa: F401
    except ImportError as error:
        print(f"configurable: {error}")
        return
    url = bench.server.url(Scenario(tokens=20))
    subjects = bench.ours(Scenario(tokens=20))
    if "ours" not in subjects:
        return
    provider = _provider()
    if provider is not None:
        model = init_chat_model(
            MODEL, model_provider=provider, configurable_fields="any", api_key=KEY, base_url=url, config_prefix="m"
        )
        given: Any = {"configurable": {"m_temperature": 0.5}}

        class Configured:
            def call(self) -> int:
                model.invoke("Write a report.", config=given)
                return 1

            async def acall(self) -> int:
                await model.ainvoke("Write a report.", config=given)
                return 1

        configured: Any = Configured()
        subjects["ours, configurable"] = configured
    bench.compare("init_chat_model(configurable_fields='any')", "µs a call", sync_and_async(subjects, "call", 20), 7)


def _provider() -> str | None:
    """Return the name under which this project's models are registered with LangChain, if they are."""
    import langchain_cerebras_ext

    register = getattr(langchain_cerebras_ext, "register_provider", None) or getattr(
        langchain_cerebras_ext, "register", None
    )
    if register is None:
        return None
    register()
    return "cerebras"


def agent(bench: Bench) -> None:
    """A whole agent run: the model asks for a tool, the tool runs, the model answers with its result."""
    made = _langchain_agents if bench.group == "langchain" else _llamaindex_agents
    candidates = made(bench.subjects(Scenario("agent", 50), ("floor",)))
    bench.compare(f"An agent that calls one tool, {bench.group}", "µs a run", candidates, 7)


def _langchain_agents(subjects: dict[str, Subject]) -> list[Candidate]:
    try:
        from langchain.agents import create_agent
        from langchain_core.tools import tool
    except ImportError as error:
        print(f"agent: {error}")
        return []

    @tool
    def write_report(text: str) -> str:
        """Write a report."""
        return "done"

    candidates = []
    for key, subject in subjects.items():
        made: Any = create_agent(subject.model, [write_report])  # type: ignore[attr-defined]
        candidates += [Candidate(f"{key} sync", _run(made)), Candidate(f"{key} async", _arun(made))]
    return candidates


_INPUT = {"messages": [{"role": "user", "content": "Write a report."}]}


def _run(made: Any) -> Any:
    def work() -> int:
        for _ in range(5):
            assert len(made.invoke(_INPUT)["messages"]) == 4
        return 5

    return work


def _arun(made: Any) -> Any:
    async def run() -> int:
        for _ in range(5):
            assert len((await made.ainvoke(_INPUT))["messages"]) == 4
        return 5

    return lambda: run_async(run())


def _llamaindex_agents(subjects: dict[str, Subject]) -> list[Candidate]:
    try:
        from llama_index.core.agent.workflow import FunctionAgent
    except ImportError as error:
        print(f"agent: {error}")
        return []
    from benchmarks.candidates.models import llamaindex_tool

    async def run(model: Any) -> int:
        for _ in range(5):
            made = FunctionAgent(tools=[llamaindex_tool()], llm=model)
            assert str(await made.run("Write a report."))
        return 5

    return [
        Candidate(f"{key} async", lambda model=subject.model: run_async(run(model)))  # type: ignore[attr-defined,misc]
        for key, subject in subjects.items()
    ]
