"""Base classes of the wire types: open towards what the service sends, closed towards what we send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from cerebras_ext.errors import RequestValidationError


class OpenModel(BaseModel):
    """Something the service sends: unknown members are kept and dumped again, everything may be missing."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=(), defer_build=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object as it came from the service (only the members that were there)."""
        return self.model_dump(mode="json", exclude_unset=True, by_alias=True)


class ClosedModel(BaseModel):
    """Something we send: an unknown member is an error, because the service refuses it at any depth."""

    model_config = ConfigDict(
        extra="forbid", populate_by_name=True, protected_namespaces=(), allow_inf_nan=False, defer_build=True
    )


class RequestModel(ClosedModel):
    """A whole request. What is wrong with it is told in one `RequestValidationError`, before anything is sent."""

    if not TYPE_CHECKING:

        def __init__(self, **data: Any) -> None:
            try:
                super().__init__(**data)
            except ValidationError as error:
                raise RequestValidationError.from_pydantic(error, type(self)) from None

    @classmethod
    def model_validate(cls, obj: Any, **kwargs: Any) -> Self:
        """Validate a mapping or an instance, like pydantic, but raise `RequestValidationError`."""
        try:
            return super().model_validate(obj, **kwargs)
        except ValidationError as error:
            raise RequestValidationError.from_pydantic(error, cls) from None
