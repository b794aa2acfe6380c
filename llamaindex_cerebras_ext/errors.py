"""What structured output raises beside the errors of a request.

CerebrasError
└── StructuredOutputError (ValueError)   the answer is not the object that was asked for
    ├── OutputTruncatedError             it ran into the token limit before it was whole
    ├── RefusalError                     the service or the model withheld it
    └── InvalidOutputError               it is not JSON, or breaks the class's rules
"""

from __future__ import annotations

from typing import Any

from cerebras_ext.errors import CerebrasError


class StructuredOutputError(CerebrasError, ValueError):
    """The answer is not the object that was asked for.

    Attributes:
        text: Text of the answer.
        raw: The answer as it came, with finish reason and usage.
    """

    def __init__(self, message: str, *, text: str = "", raw: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.text = text
        self.raw = raw


class OutputTruncatedError(StructuredOutputError):
    """The answer ran into the token limit before it was whole."""


class RefusalError(StructuredOutputError):
    """The service or the model withheld the answer."""


class InvalidOutputError(StructuredOutputError):
    """The answer is not JSON, or breaks the rules of the class; the cause is in `__cause__`."""
