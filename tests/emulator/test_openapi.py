"""The two endpoints' description, through schemathesis: valid requests are answered, and as described."""

from __future__ import annotations

from typing import Any

import httpx
import hypothesis
import pytest

from cerebras_ext.emulator import Emulator
from tests.conformance.recordings import FOLDER
from tests.emulator.support import CHAT, COMPLETIONS, HEADERS, events

pytestmark = [pytest.mark.recordings, pytest.mark.once]

DESCRIPTION = FOLDER.parent.parent / "spec" / "openapi.yaml"
MODELS = ("gpt-oss-120b", "qwen-3.8-27b", "gemma-4-31b", "zai-glm-4.7")
EXAMPLES = 100


def repaired(body: dict[str, Any]) -> dict[str, Any]:
    """Return a valid body without what the description cannot forbid: fields that exclude each other."""
    body = dict(body)
    if body.get("tools"):
        body.pop("response_format", None)
    else:
        body.pop("tool_choice", None)
    if isinstance(body.get("tool_choice"), dict):
        body["tool_choice"] = "auto"
    if not body.get("logprobs"):
        body.pop("top_logprobs", None)
    if body.get("max_tokens") is not None:
        body.pop("max_completion_tokens", None)
    if (body.get("response_format") or {}).get("type") == "json_object":
        body["stream"] = False
    if body.get("reasoning_format") in ("raw", "hidden"):
        body.pop("reasoning_format")
    if body.get("reasoning_effort") == "none" and body["model"] == "gpt-oss-120b":
        body.pop("reasoning_effort")
    if "messages" in body:
        body["messages"] = [message for message in body["messages"] if _stands_alone(message)] or [
            {"role": "user", "content": "x"}
        ]
    if "prompt" in body:
        body["prompt"] = _counted_from_zero(body["prompt"]) or "x"
    for name in ("best_of", "logit_bias", "prediction"):
        body.pop(name, None)
    for name in ("max_tokens", "max_completion_tokens", "min_tokens"):
        if (body.get(name) or 0) < -1:
            body.pop(name)
    if body.get("n") is not None:
        body["n"] = 1 + body["n"] % 3
    return body


def _counted_from_zero(prompt: Any) -> Any:
    if isinstance(prompt, list):
        return [_counted_from_zero(part) for part in prompt]
    return abs(prompt) if isinstance(prompt, int) else prompt


def _stands_alone(message: dict[str, Any]) -> bool:
    content = message.get("content")
    pictures = isinstance(content, list) and any(part.get("type") != "text" for part in content)
    return message["role"] != "tool" and not message.get("tool_calls") and not pictures


def described(path: str) -> Any:
    if not DESCRIPTION.is_file():
        pytest.skip("the description of the endpoints is not beside the recordings")
    schemathesis = pytest.importorskip("schemathesis")
    return schemathesis.openapi.from_path(str(DESCRIPTION))[path]["POST"]


@pytest.mark.slow
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_valid_requests_are_answered(running: Emulator, path: str) -> None:
    operation = described(path)
    asked = {"as it is": 0, "repaired": 0}
    answered = {"as it is": 0, "repaired": 0}

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(operation.as_strategy(), hypothesis.strategies.sampled_from(MODELS))
    def run(case: Any, model: str) -> None:
        if not isinstance(case.body, dict) or not case.media_type.endswith("json"):
            return
        for kind, body in (
            ("as it is", case.body | {"model": model}),
            ("repaired", repaired(case.body | {"model": model})),
        ):
            answer = client.post(operation.path, json=body)
            asked[kind] += 1
            answered[kind] += answer.status_code == 200
            check(operation, answer, body)

    with httpx.Client(base_url=running.base_url, headers=HEADERS, trust_env=False, verify=False, timeout=30) as client:
        run()
    assert asked["repaired"] >= EXAMPLES // 4
    assert answered["repaired"] >= 0.9 * asked["repaired"], (asked, answered)
    assert answered["as it is"] >= 0.1 * asked["as it is"], (asked, answered)


def check(operation: Any, answer: Any, body: dict[str, Any]) -> None:
    """Check that an answer is one that the description has."""
    assert str(answer.status_code) in operation.definition.raw["responses"], answer.text
    assert answer.status_code < 500, answer.text
    if answer.status_code != 200:
        assert answer.json()["message"], body
    elif body.get("stream"):
        assert all(event["choices"] for event in events(answer.text))
        assert answer.text.endswith("data: [DONE]\n\n")
    else:
        assert answer.json()["choices"], body
        assert HEADERS["authorization"] not in answer.text
