"""The vendor's own SDK as a client: it knows nothing of this library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from cerebras_ext.emulator import Emulator, Fault
from tests.emulator.support import MODEL, user
from tests.emulator.test_tools import WEATHER

sdk = pytest.importorskip("cerebras.cloud.sdk")


@pytest.fixture
def client(emu: Emulator) -> Iterator[Any]:
    http = httpx.Client(trust_env=False, verify=False)
    with sdk.Cerebras(api_key="k", base_url=emu.base_url, http_client=http, max_retries=0) as made:
        yield made


@pytest.fixture
async def async_client(emu: Emulator) -> AsyncIterator[Any]:
    http = httpx.AsyncClient(trust_env=False, verify=False)
    async with sdk.AsyncCerebras(
        api_key="k", base_url=emu.base_url, http_client=http, max_retries=0, warm_tcp_connection=False
    ) as made:
        yield made


def test_warming_models_and_chat(client: Any, emu: Emulator) -> None:
    assert [request.path for request in emu.requests] == ["/v1/tcp_warming"]
    assert MODEL in [model.id for model in client.models.list().data]
    assert client.models.retrieve(MODEL).id == MODEL
    answer = client.chat.completions.create(model=MODEL, messages=user("What is 2 + 2?"))
    assert answer.choices[0].message.content == "2 + 2 = 4"
    assert answer.choices[0].message.reasoning
    assert answer.usage.total_tokens > 0
    assert answer.time_info.total_time > 0
    assert answer.system_fingerprint.startswith("fp_emulator")


def test_streamed_chat(client: Any) -> None:
    chunks = list(client.chat.completions.create(model=MODEL, messages=user("Count to 5"), stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "1, 2, 3, 4, 5"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.completion_tokens > 0


def test_tools(client: Any) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=user("Weather in Oslo and Rome?"), tools=[WEATHER])
    functions = [call.function for call in answer.choices[0].message.tool_calls]
    assert [function.arguments for function in functions] == ['{"city": "Oslo"}', '{"city": "Rome"}']


def test_completions(client: Any) -> None:
    assert client.completions.create(model=MODEL, prompt="Count to 3").choices[0].text == " 1, 2, 3"
    chunks = list(client.completions.create(model=MODEL, prompt="Count to 3", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == " 1, 2, 3"


async def test_async(async_client: Any) -> None:
    answer = await async_client.chat.completions.create(model=MODEL, messages=user("What is 2 + 2?"))
    assert answer.choices[0].message.content == "2 + 2 = 4"
    stream = await async_client.chat.completions.create(model=MODEL, messages=user("Count to 5"), stream=True)
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "1, 2, 3, 4, 5"
    text = await async_client.completions.create(model=MODEL, prompt="Count to 3")
    assert text.choices[0].text == " 1, 2, 3"


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, "BadRequestError"), (401, "AuthenticationError"), (402, "APIStatusError"), (404, "NotFoundError"),
     (422, "UnprocessableEntityError"), (429, "RateLimitError"), (500, "InternalServerError")],
)  # fmt: skip
def test_refusals(client: Any, emu: Emulator, status: int, error: str) -> None:
    emu.fail(status)
    with pytest.raises(getattr(sdk, error)) as caught:
        client.chat.completions.create(model=MODEL, messages=user("x"))
    assert caught.value.status_code == status


def test_an_unknown_model_and_an_unknown_member(client: Any) -> None:
    with pytest.raises(sdk.NotFoundError, match="model_not_found"):
        client.chat.completions.create(model="nothing", messages=user("x"))
    with pytest.raises(sdk.BadRequestError, match="property 'store' is unsupported"):
        client.chat.completions.create(model=MODEL, messages=user("x"), extra_body={"store": True})


def test_an_error_event_and_a_broken_connection(client: Any, emu: Emulator) -> None:
    emu.script(Fault(error_after_chunks=2), Fault(cut_after_chunks=2, cut="reset"))
    with pytest.raises(sdk.APIStatusError, match="server error"):
        list(client.chat.completions.create(model=MODEL, messages=user("x"), stream=True))
    with pytest.raises(httpx.ReadError):
        list(client.chat.completions.create(model=MODEL, messages=user("x"), stream=True))


def test_its_retries(emu: Emulator) -> None:
    http = httpx.Client(trust_env=False, verify=False)
    with sdk.Cerebras(api_key="k", base_url=emu.base_url, http_client=http, warm_tcp_connection=False) as client:
        emu.fail(429, headers={"retry-after-ms": "1"}, times=2)
        client.chat.completions.create(model=MODEL, messages=user("x"))
    assert len(emu.requests) == 3
