"""JSON in and out: the fastest parser that is there, and text that the service can read."""

from __future__ import annotations

import json
import json.encoder
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pydantic_core

_SURROGATE = re.compile("[\ud800-\udfff]")


def loads(text: bytes | str) -> Any:
    """Parse JSON; lone surrogates in escapes, which strict parsers refuse, become U+FFFD.

    Raises:
        ValueError: The text is not JSON.
    """
    try:
        return pydantic_core.from_json(text, cache_strings="keys")
    except ValueError:
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        try:
            return replace_surrogates(json.loads(text))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def loads_partial(text: str) -> Any:
    """Parse the beginning of a JSON text, keeping a string that is cut off; None where there is nothing yet."""
    try:
        return pydantic_core.from_json(text, allow_partial="trailing-strings", allow_inf_nan=False)
    except ValueError:
        return None


def dumps(value: Any) -> bytes:
    """Encode as compact JSON in UTF-8; lone surrogates are replaced, since the service refuses them.

    Raises:
        ValueError: The value has something that JSON has no form for (NaN, an object of the user's).
    """
    try:
        text = pydantic_core.to_json(value)
    except pydantic_core.PydanticSerializationError as error:
        if "surrogates" not in str(error):
            raise ValueError(f"cannot be written as JSON: {error}") from None
        text = pydantic_core.to_json(replace_surrogates(value))
    refuse_constants(text)
    return text


_standard_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_SAMPLE = {"a": 'é\u2028"\\\n\x00', "b": [1, 2.5, 1e300, True, None, {}], 'ü"': {"c": {"d": []}}, "1": -0.0}


def _refuse(value: Any) -> NoReturn:
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _ready_encoder() -> Callable[[Mapping[str, Any], int], Any] | None:
    """Return what a `JSONEncoder` makes anew for each text, or None where that is not to be had, or writes otherwise.

    It keeps no note of containers that it is in, so a circular value ends in a RecursionError.
    """
    try:
        module: Any = json.encoder
        encoder: Callable[[Mapping[str, Any], int], Any] = module.c_make_encoder(
            None, _refuse, module.encode_basestring, None, ": ", ", ", False, False, False
        )
        alike = "".join(encoder(_SAMPLE, 0)) == _standard_encoder(_SAMPLE)
    except Exception:  # noqa: BLE001 (whatever is different in another Python, the standard encoder is right)
        return None
    return encoder if alike else None


_encoder = _ready_encoder()


def dump_text(value: dict[str, Any]) -> str:
    """Return an object as JSON text in the layout of the `json` module, which is that of the service's arguments.

    Raises:
        TypeError, ValueError, RecursionError: It has something that JSON has no form for.
    """
    if _encoder is not None:
        try:
            return "".join(_encoder(value, 0))
        except (TypeError, ValueError, RecursionError):
            pass  # the standard encoder says it better
    return _standard_encoder(value)


def refuse_constants(text: bytes | str) -> None:
    """Refuse NaN and the infinities, which Python reads and writes and JSON does not have.

    Raises:
        ValueError: There is one.
    """
    names = (b"NaN", b"Infinity") if isinstance(text, bytes) else ("NaN", "Infinity")
    if any(name[:1] in text and name in text for name in names):  # type: ignore[operator]
        json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} has no form in JSON")


def replace_surrogates(value: Any) -> Any:
    """Return a copy in which surrogate pairs are joined and lone surrogates are U+FFFD."""
    if isinstance(value, str):
        if _SURROGATE.search(value) is None:
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [replace_surrogates(item) for item in value]
    return value
