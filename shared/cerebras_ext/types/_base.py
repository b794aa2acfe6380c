"""Base classes of the wire types: open towards what the service sends, closed towards what we send."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from cerebras_ext.errors import RequestValidationError, unknown_field_message


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


def _told(error: ValidationError, model: type[BaseModel]) -> RequestValidationError:
    """Return the error of `__init__`, which pydantic calls and wraps when it validates a mapping, or make one."""
    for item in error.errors(include_url=False):
        inner = item.get("ctx", {}).get("error")
        if isinstance(inner, RequestValidationError):
            return inner
    return RequestValidationError.from_pydantic(error, model)


class RequestModel(ClosedModel):
    """A whole request. What is wrong with it is told in one `RequestValidationError`, before anything is sent."""

    if not TYPE_CHECKING:

        def __init__(self, **data: Any) -> None:
            try:
                super().__init__(**data)
            except ValidationError as error:
                raise RequestValidationError.from_pydantic(error, type(self)) from None

    def given(self) -> dict[str, Any]:
        """Return the fields that were set, as they are."""
        return {name: self.__dict__[name] for name in self.model_fields_set}

    @classmethod
    def model_validate(cls, obj: Any, **kwargs: Any) -> Self:
        """Validate a mapping or an instance, like pydantic, but raise `RequestValidationError`."""
        try:
            return super().model_validate(obj, **kwargs)
        except ValidationError as error:
            raise _told(error, cls) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **kwargs: Any) -> Self:
        """Validate JSON text, like pydantic, but raise `RequestValidationError`."""
        try:
            return super().model_validate_json(json_data, **kwargs)
        except ValidationError as error:
            raise _told(error, cls) from None

    @classmethod
    def check_fields(cls, fields: Mapping[str, Any]) -> None:
        """Check fields of a request that is not whole yet, such as the settings of an adapter.

        Raises:
            RequestValidationError: A name is unknown, or a value is not legal for its field.
        """
        blank = _blank(cls).model_copy()
        for name, value in fields.items():
            if name not in cls.model_fields:
                raise RequestValidationError(unknown_field_message(name, name, list(cls.model_fields)))
            try:
                cls.__pydantic_validator__.validate_assignment(blank, name, value)
            except ValidationError as error:
                raise RequestValidationError.from_pydantic(error, cls) from None


@cache
def _blank(model: type[RequestModel]) -> RequestModel:
    """Return an instance without any value, to be copied: making one anew costs ten times as much."""
    return model.model_construct()
