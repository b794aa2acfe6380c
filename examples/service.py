"""Where the examples send their requests: the real service if there is a key, else an emulator in this process."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL = os.environ.get("CEREBRAS_MODEL", "gpt-oss-120b")


@contextlib.contextmanager
def service() -> Iterator[str]:
    """Yield a sentence that says who answers; models made inside find their address and key in the environment."""
    if os.environ.get("CEREBRAS_API_KEY"):
        address = os.environ.get("CEREBRAS_BASE_URL") or os.environ.get("CEREBRAS_API_BASE")
        yield f"{address or 'The real service'} answers (CEREBRAS_API_KEY is set)."
        return
    from cerebras_ext.emulator import Emulator

    with Emulator() as emulator:
        os.environ["CEREBRAS_BASE_URL"] = emulator.base_url
        os.environ["CEREBRAS_API_KEY"] = "csk-for-the-emulator"
        try:
            yield "The local emulator answers: no key, no network, and no large language model either."
        finally:
            del os.environ["CEREBRAS_BASE_URL"], os.environ["CEREBRAS_API_KEY"]


def report(tokens_in: int | None, tokens_out: int | None, seconds: float | None) -> None:
    """Print the usage of one answer and how fast it was made, from the service's own figures."""
    speed = f", {tokens_out / seconds:,.0f} tokens/s" if tokens_out and seconds else ""
    print(f"   [{tokens_in} tokens in, {tokens_out} tokens out{speed}]\n")
