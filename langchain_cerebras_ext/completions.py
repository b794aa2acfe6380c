"""From prompts to requests of the completions endpoint, and from its answers to generations: pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pydantic_core
from langchain_core.outputs import Generation, GenerationChunk, LLMResult

from cerebras_ext.assembly import CompletionDelta
from cerebras_ext.errors import APIResponseError, RequestValidationError
from cerebras_ext.types import CompletionChoice, CompletionResponse
from langchain_cerebras_ext.base import PROVIDER, add_usage

TOKEN_IDS_OPTION = "token_ids"

_BLANKS = bytes.maketrans(b",", b" ")


class TokenText(str):
    """Token ids as the text that stands for them in a prompt, with the ids, so that they need not be read again."""

    token_ids: list[int]


def token_text(token_ids: Sequence[int]) -> str:
    """Return token ids as the text that stands for them in a prompt: numbers with blanks between them."""
    ids = list(token_ids)
    try:
        digits = pydantic_core.to_json(ids)[1:-1]
    except pydantic_core.PydanticSerializationError:
        digits = b""
    if not digits or digits.translate(None, b"0123456789,"):  # something else than whole numbers from 0
        return " ".join(map(str, ids))
    text = TokenText(digits.translate(_BLANKS).decode("ascii"))
    text.token_ids = ids
    return text


def parse_token_ids(prompt: str) -> list[int]:
    """Return the token ids that a prompt names.

    Raises:
        RequestValidationError: The prompt is not a list of whole numbers from 0.
    """
    if isinstance(prompt, TokenText):
        return prompt.token_ids
    pieces = prompt.replace(",", " ").split()
    digits = "".join(pieces)
    if not (digits.isascii() and digits.isdigit()):
        shown = prompt if len(prompt) <= 80 else f"{prompt[:77]}..."
        raise RequestValidationError(
            f"prompt: {TOKEN_IDS_OPTION}=True needs token ids with blanks between them, got {shown!r}"
        )
    return [int(piece) for piece in pieces]


def batches(prompts: list[str], size: int, *, token_ids: bool) -> Iterator[tuple[int, Any]]:
    """Yield the number of prompts and the `prompt` member of each request. One prompt is sent without a list."""
    for start in range(0, len(prompts), size):
        texts = prompts[start : start + size]
        batch: list[Any] = [parse_token_ids(text) for text in texts] if token_ids else list(texts)
        yield len(batch), batch[0] if len(batch) == 1 else batch


def generations_of(response: CompletionResponse, prompts: int, n: int, *, headers: bool) -> list[list[Generation]]:
    """Return the generations of each prompt of a request, by the number that each choice has.

    Args:
        response: The answer.
        prompts: How many prompts were sent.
        n: How many completions of each were asked for.
        headers: Whether to put the response headers into the metadata.

    Raises:
        APIResponseError: A completion is missing, or one is too many.
    """
    found = {choice.index: choice for choice in response.choices}
    if len(found) != len(response.choices) or found.keys() != set(range(prompts * n)):
        raise APIResponseError(
            f"expected {prompts * n} completions ({prompts} prompts, n={n}), "
            f"got those with the numbers {sorted(choice.index for choice in response.choices)}",
            body=response.to_dict(),
            request_id=response.info.request_id if response.info else None,
            response_id=response.id,
        )
    only = len(found) == 1
    return [
        [
            Generation(text=choice.text, generation_info=_info(choice, response, usage=only, headers=headers))
            for choice in (found[prompt * n + number] for number in range(n))
        ]
        for prompt in range(prompts)
    ]


def _info(choice: CompletionChoice, response: CompletionResponse, *, usage: bool, headers: bool) -> dict[str, Any]:
    """Return what there is to know about one completion.

    Usage is counted over a whole request, so it stands here only where that has one completion.
    """
    info: dict[str, Any] = {"model_provider": PROVIDER}
    logprobs = choice.logprobs.to_dict() if choice.logprobs else None
    values = {
        "finish_reason": choice.finish_reason,
        "logprobs": logprobs,
        "tokens": choice.tokens,
        "id": response.id,
        "created": response.created,
        "model_name": response.model,
        "system_fingerprint": response.system_fingerprint,
        "time_info": response.time_info.to_dict() if response.time_info else None,
        "token_usage": response.usage.to_dict() if usage and response.usage else None,
        "headers": dict(response.info.headers) if headers and response.info else None,
    }
    info.update({name: value for name, value in values.items() if value is not None})
    return info


def chunk_of_delta(delta: CompletionDelta) -> GenerationChunk | None:
    """Return the chunk for what a stream's event adds, or None for one that adds neither text nor tokens."""
    if delta.tokens:
        return GenerationChunk(text=delta.text, generation_info={"tokens": list(delta.tokens)})
    return GenerationChunk(text=delta.text) if delta.text else None


def last_chunk(response: CompletionResponse, *, headers: bool) -> GenerationChunk:
    """Return the chunk that ends a stream and has everything but text and tokens, so that chunks can be added."""
    info = _info(response.choices[0], response, usage=True, headers=headers)
    info.pop("tokens", None)
    return GenerationChunk(text="", generation_info=info)


def result_of(generations: list[list[Generation]], responses: Sequence[CompletionResponse]) -> LLMResult:
    """Return the result of a call, with the usage of all its requests added up."""
    output: dict[str, Any] = {"model_provider": PROVIDER}
    usage: dict[str, Any] = {}
    for response in responses:
        usage = add_usage(usage, response.usage.to_dict() if response.usage else {})
    if usage:
        output["token_usage"] = usage
    for name, member in (("model_name", "model"), ("system_fingerprint", "system_fingerprint")):
        values = [value for value in (getattr(response, member) for response in responses) if value is not None]
        if values:
            output[name] = values[0]
    return LLMResult(generations=[list(row) for row in generations], llm_output=output)
