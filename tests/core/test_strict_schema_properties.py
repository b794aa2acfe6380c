"""The strict dialect over random schemas and random pydantic classes."""

from __future__ import annotations

import copy
import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from cerebras_ext.strict_schema import SchemaError, SchemaLimits, StrictSchema, to_strict_schema

NO_LIMITS = SchemaLimits(10**9, 10**9, 10**9, 10**9, 10**9, 10**9)
SENT = {
    "type", "description", "enum", "anyOf", "properties", "required", "additionalProperties", "items", "prefixItems",
    "$ref", "$defs",
}  # fmt: skip
NAMES = st.sampled_from(["a", "b", "c", "title", "default", "format", "é"])
SIZES = st.integers(0, 5)


def positions(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every schema inside a wire schema."""
    yield schema
    parts = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ()),
             *schema.get("prefixItems", ())]  # fmt: skip
    if schema.get("items"):
        parts.append(schema["items"])
    for part in parts:
        yield from positions(part)


def strict_or_none(schema: dict[str, Any], limits: SchemaLimits) -> StrictSchema | None:
    try:
        return to_strict_schema(schema, limits=limits)
    except SchemaError as error:
        if limits is NO_LIMITS or "characters as compact JSON" not in str(error):
            raise
        return None


# ---- random schemas, of the kinds that pydantic and people write ----


def annotated(schemas: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    texts = st.sampled_from(["Text.", "More text, \N{SNOWMAN}."])
    noise = st.fixed_dictionaries({}, optional={
        "title": texts, "description": texts, "examples": st.just([1]), "$comment": texts, "deprecated": st.just(True),
        "nullable": st.booleans(),
    })  # fmt: skip
    return st.builds(lambda schema, extra: {**extra, **schema}, schemas, noise)


def typed(kind: str, **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind)}, optional=optional)


LEAVES = st.one_of(
    typed("string", minLength=SIZES, maxLength=SIZES, pattern=st.just("^a"), format=st.just("email")),
    typed("integer", minimum=SIZES, exclusiveMaximum=SIZES, multipleOf=st.just(2)),
    typed("number", exclusiveMinimum=SIZES, maximum=SIZES),
    typed("boolean"),
    st.just({"type": "null"}),
    st.just({"type": ["string", "null"], "minLength": 1}),
    st.builds(lambda value: {"const": value}, st.sampled_from(["a", 1, True, None])),
    st.builds(lambda values: {"enum": values}, st.lists(st.sampled_from(["a", "b", 1, 2.5, None]), min_size=1)),
    st.builds(lambda name: {"$ref": f"#/$defs/{name}"}, st.sampled_from(["First", "Second", "Third"])),
)


def objects(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def build(properties: dict[str, Any], mask: list[bool], extra: dict[str, Any]) -> dict[str, Any]:
        required = [name for name, wanted in zip(properties, mask, strict=False) if wanted]
        return {"type": "object", "properties": properties, "required": required, **extra}

    properties = st.dictionaries(NAMES, parts, max_size=4)
    extra = st.fixed_dictionaries({}, optional={"additionalProperties": st.just(False), "minProperties": SIZES})
    return st.builds(build, properties, st.lists(st.booleans(), max_size=4), extra)


def containers(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(parts, min_size=1, max_size=3)
    return st.one_of(
        objects(parts),
        st.builds(lambda items, rest: {"type": "array", "items": items, **rest}, parts,
                  st.fixed_dictionaries({}, optional={"minItems": SIZES, "uniqueItems": st.just(True)})),
        st.builds(lambda prefix: {"type": "array", "prefixItems": prefix, "maxItems": len(prefix)}, some),
        st.builds(lambda key, branches: {key: branches}, st.sampled_from(["anyOf", "oneOf"]), some),
        st.builds(lambda part: {"allOf": [part]}, parts),
    )  # fmt: skip


PARTS = st.recursive(annotated(LEAVES), lambda parts: annotated(containers(parts)), max_leaves=8)
DEFINITIONS = {
    "First": {"type": "string", "title": "First", "enum": ["x", "y"]},
    "Second": {
        "type": "object",
        "description": "Second.",
        "properties": {"f": {"$ref": "#/$defs/First", "default": "x"}},
    },
    "Third": {"anyOf": [{"$ref": "#/$defs/Second"}, {"$ref": "#/$defs/First"}, {"type": "integer", "minimum": 2}]},
}
SCHEMAS = st.builds(lambda part: {**part, "$defs": DEFINITIONS}, st.one_of(PARTS, annotated(objects(PARTS))))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS, st.sampled_from([NO_LIMITS, SchemaLimits(characters=600)]))
def test_what_is_sent_is_in_the_dialect(schema: dict[str, Any], limits: SchemaLimits) -> None:
    before = copy.deepcopy(schema)
    strict = strict_or_none(schema, limits)
    assert schema == before
    if strict is None:
        return
    assert strict.schema["type"] == "object"
    references = []
    for part in positions(strict.schema):
        assert set(part) <= SENT
        assert len({"type", "anyOf", "$ref"} & set(part)) == 1
        references.append(part.get("$ref"))
        if "$ref" in part:
            assert set(part) == {"$ref"}
            assert part["$ref"].removeprefix("#/$defs/") in strict.schema["$defs"]
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
        if part.get("type") == "array":
            assert part["items"] or part["prefixItems"]
    assert all(references.count(f"#/$defs/{name}") > 1 for name in strict.schema.get("$defs", ()))
    assert to_strict_schema(strict.schema, limits=limits).schema == strict.schema
    assert len(json.dumps(strict.schema, ensure_ascii=False, separators=(",", ":"))) <= limits.characters


@settings(deadline=None)
@given(SCHEMAS, st.recursive(
    st.sampled_from([None, True, 1, 2.5, "a", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.just("value"), inner, max_size=4),
))  # fmt: skip
def test_any_answer_can_be_restored(schema: dict[str, Any], answer: Any) -> None:
    before = copy.deepcopy(answer)
    strict = to_strict_schema(schema, limits=NO_LIMITS)
    strict.restore(answer)
    assert answer == before


# ---- random classes, there and back ----


class Shade(Enum):
    LIGHT = "light"
    DARK = "dark"


class Square(BaseModel):
    kind: Literal["square"] = "square"
    side: float = Field(1.5, gt=0)
    shade: Shade | None = None


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float | None = 2.5
    tags: list[str] = Field([], max_length=3)


class Box(BaseModel):
    shape: Square | Circle = Field(Square(), discriminator="kind")
    names: list[Annotated[str, Field(min_length=1)]] | None = None
    corner: tuple[int, str] = (0, "x")


numbers = st.floats(0.5, 9, width=16)
squares = (
    st.builds(Square, side=numbers) | st.builds(Square, shade=st.none() | st.sampled_from(Shade)) | st.just(Square())
)
circles = st.builds(Circle, kind=st.just("circle"), radius=st.none() | numbers) | st.just(Circle(kind="circle"))
boxes = (
    st.builds(Box, shape=squares | circles, names=st.none() | st.lists(st.just("n"), max_size=2))
    | st.builds(Box, corner=st.tuples(st.integers(), st.text(max_size=3)))
    | st.just(Box())
)
KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (str, st.text(max_size=5)),
    (bool, st.booleans()),
    (Annotated[str, Field(min_length=1, max_length=4)], st.text("ab", min_size=1, max_size=4)),
    (Annotated[int, Field(ge=0, multiple_of=2)], st.integers(0, 50).map(lambda number: number * 2)),
    (Literal["a", 1], st.sampled_from(["a", 1])),
    (Shade, st.sampled_from(Shade)),
    (datetime.date, st.dates()),
    (Decimal, st.decimals(-99, 99, places=2)),
    (set[int], st.sets(st.integers(), max_size=3)),
    (list[Box], st.lists(boxes, max_size=2)),
    (Box, boxes),
    (Annotated[Square | Circle, Field(discriminator="kind")], squares | circles),
    (str | int, st.text(max_size=3) | st.integers()),
]


@st.composite
def instances(draw: st.DrawFn) -> BaseModel:
    """Draw a class and an instance of it, with only some of the optional fields set."""
    fields: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for number in range(draw(st.integers(1, 4))):
        name = f"field_{number}"
        annotation, strategy = draw(st.sampled_from(KINDS))
        if draw(st.booleans()):
            annotation, strategy = annotation | None, st.none() | strategy
        choice = draw(st.sampled_from(["required", "default", "described"]))
        default = ... if choice == "required" else draw(strategy)
        fields[name] = (annotation, Field(default, description="Said." if choice == "described" else None))
        if choice == "required" or draw(st.booleans()):
            values[name] = draw(strategy)
    drawn: type[BaseModel] = create_model("Drawn", **fields)
    return drawn(**values)


def as_answer(value: Any) -> Any:
    """Dump like a model in strict mode: null where a field is left out, unless null would mean something else."""
    if isinstance(value, BaseModel):
        answer: dict[str, Any] = {}
        for name, info in type(value).model_fields.items():
            here = getattr(value, name)
            left_out = name not in value.model_fields_set and name != "kind"
            if left_out and (info.default is None or not _takes_null(info)):
                answer[name] = None
            else:
                answer[name] = as_answer(here)
        return answer
    if isinstance(value, (list, tuple)):
        return [as_answer(item) for item in value]
    if isinstance(value, (set, Enum, datetime.date, Decimal)):
        return create_model("Plain", x=(type(value), ...))(x=value).model_dump(mode="json")["x"]
    return value


def _takes_null(info: Any) -> bool:
    return type(None) in getattr(info.annotation, "__args__", ())


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(instances())
def test_an_instance_survives_the_strict_form(instance: BaseModel) -> None:
    strict = to_strict_schema(type(instance).model_json_schema(), limits=NO_LIMITS)
    answer = json.loads(json.dumps(as_answer(instance)))
    assert set(answer) == set(strict.schema["properties"])
    assert type(instance).model_validate(strict.restore(answer)) == instance
    assert strict.validate(answer) == strict.restore(answer)
