"""The example programs: right answers on the emulator, one by one and all together."""

from __future__ import annotations

import pytest

from examples import __main__ as demo
from examples import completions, langchain_agent, langchain_chain, llamaindex_rag
from examples.service import service


def test_chain_answers_from_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    with service():
        answer = langchain_chain.main()

    assert "dinner plate" in answer
    assert "tokens/s" in capsys.readouterr().out


def test_agent_answers_with_the_result_of_its_tool(capsys: pytest.CaptureFixture[str]) -> None:
    with service():
        answer = langchain_agent.main()

    assert "37" in answer
    assert "calls stock_level" in capsys.readouterr().out


def test_query_answers_from_the_documents_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    with service():
        own, swapped = llamaindex_rag.main()

    assert "until you configure it" in own
    assert "when it snows" in swapped
    output = capsys.readouterr().out
    assert "configuration.md" in output
    assert "forest.md" in output


def test_both_frameworks_reach_the_completions_endpoint() -> None:
    with service():
        from_langchain, from_llamaindex = completions.main()

    assert from_langchain == from_llamaindex
    assert "three minutes" in from_langchain


def test_demo_says_that_it_runs_on_the_emulator(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CEREBRAS_API_KEY", raising=False)

    demo.main()

    output = capsys.readouterr().out
    assert "emulator" in output.splitlines()[0]
    assert [title for title in demo.EXAMPLES if title not in output] == []


def test_demo_uses_the_real_service_when_there_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", "csk-some-key")
    monkeypatch.delenv("CEREBRAS_BASE_URL", raising=False)
    monkeypatch.delenv("CEREBRAS_API_BASE", raising=False)

    with service() as who:
        assert "real service" in who


def test_demo_names_an_address_of_your_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", "csk-some-key")
    monkeypatch.setenv("CEREBRAS_BASE_URL", "http://127.0.0.1:8080")

    with service() as who:
        assert "http://127.0.0.1:8080" in who
        assert "real service" not in who
