"""What the dialect raises; apart, since adapters derive from it before any schema is read."""

from __future__ import annotations

from cerebras_ext.errors import CerebrasError, RequestValidationError


class SchemaError(RequestValidationError):
    """The schema has no strict form. Raised before anything is sent; the text names the path and the way out."""


class AnswerMismatchError(CerebrasError, ValueError):
    """An answer breaks the schema it was asked for. `faults` lists every place, as "path: reason"."""

    def __init__(self, *faults: str) -> None:
        super().__init__(*faults)
        self.faults = faults

    def __str__(self) -> str:
        return "the answer does not match its schema:\n" + "\n".join(self.faults)
