"""What is no prompt is refused before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from cerebras_ext.errors import RequestValidationError
from llamaindex_cerebras_ext import CerebrasCompletion


@pytest.fixture
def llm() -> CerebrasCompletion:
    return CerebrasCompletion(model="m", api_key="k", api_base="http://127.0.0.1:9", max_retries=0)


@pytest.mark.parametrize("prompt", [5, None, {"a": 1}, b"q"])
async def test_what_is_no_prompt_is_refused(llm: CerebrasCompletion, prompt: Any) -> None:
    refused = pytest.raises(RequestValidationError, match=r"^prompt: must be text or token ids, got ")
    with refused:
        llm.complete(prompt)
    with refused:
        await llm.acomplete(prompt)
    with refused:
        llm.stream_complete(prompt)
    with refused:
        await llm.astream_complete(prompt)
    with refused:
        llm.complete_batch(["q", prompt])
    with refused:
        await llm.acomplete_batch(["q", prompt])


@pytest.mark.parametrize("prompts", [5, "several", {"a": 1}])
async def test_what_is_no_list_of_prompts_is_refused(llm: CerebrasCompletion, prompts: Any) -> None:
    refused = pytest.raises(RequestValidationError, match=r"^prompts: must be a list of prompts, got ")
    with refused:
        llm.complete_batch(prompts)
    with refused:
        await llm.acomplete_batch(prompts)
