"""Every violation is reported where it is, whatever the keys of the value are."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.pointer import join_pointer, split_pointer
from cleats.contract.violations import Validator
from tests.support.requirements import requirement
from tests.support.shell import LAW_SETTINGS

NASTY_KEYS = (
    *("", "~", "/", "~1", "~0", "a/b", "0", "00", "007", "+1", "-1", "1e3", "é😀", " ", "\\", "'", "]", "a"),
    *('"]["', '[""]', '"]:\n', "\n\nOn instance", 'On instance[""]:\n    '),
)
"""Keys that are special in pointers, in numbers or in the texts of the validator library."""

KEYS = st.sampled_from(NASTY_KEYS) | st.text(max_size=2)


@st.composite
def draw_faulty_pairs(draw: st.DrawFn, depth: int = 0) -> tuple[Any, Any]:
    """Draw a schema and a value that has the schema's keys, so that many of its rules apply and are violated."""
    kind = draw(st.sampled_from(["object", "object", "object", "array", "leaf"])) if depth < 4 else "leaf"
    schema: dict[str, Any] = {}
    if draw(st.booleans()):
        schema["type"] = draw(st.sampled_from(["integer", "string", "object", "array"]))
    if kind == "leaf":
        return schema, draw(st.sampled_from([1, 1.5, "text", None, True]))
    if kind == "array":
        schema["items"], value = draw(draw_faulty_pairs(depth + 1))
        return schema, [value, draw(st.sampled_from([1, "text", {}])), value]
    pairs = draw(st.dictionaries(KEYS, draw_faulty_pairs(depth + 1), max_size=3))
    schema["properties"] = {key: subschema for key, (subschema, _) in pairs.items()}
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.sampled_from([False, {"type": "integer"}]))
    if draw(st.booleans()):
        schema["required"] = draw(st.lists(KEYS, max_size=2, unique=True))
    if draw(st.booleans()):
        schema["propertyNames"] = {"maxLength": 2}
    extra_values = draw(st.dictionaries(KEYS, st.sampled_from([1, "text"]), max_size=1))
    return schema, {**extra_values, **{key: value for key, (_, value) in pairs.items()}}


def find_by_oracle(schema: Any, value: Any) -> set[tuple[str, str]]:
    """Return the place and the keyword of every fault that python-jsonschema finds, in our form."""
    faults: set[tuple[str, str]] = set()
    for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
        parts = list(error.absolute_path)
        if error.validator == "additionalProperties":
            known_names = error.schema.get("properties", {})
            faults |= {
                (join_pointer([*parts, n]), "additionalProperties") for n in error.instance if n not in known_names
            }
        else:
            is_name = "propertyNames" in list(error.absolute_schema_path)[-2:-1]
            faults.add((join_pointer(parts), "propertyNames" if is_name else str(error.validator)))
    return faults


@requirement("d:errors:pointers")
@LAW_SETTINGS
@given(draw_faulty_pairs())
def test_the_places_of_all_violations_are_those_that_another_library_finds(pair: tuple[Any, Any]) -> None:
    schema, value = pair

    violations = Validator(schema).find_violations(value)

    # A schema that allows no property at all is a false schema to the library.
    found = {(v.path, "additionalProperties" if v.keyword == "falseSchema" else v.keyword) for v in violations}
    assert found == find_by_oracle(schema, value)


@requirement("d:errors:pointers")
@pytest.mark.parametrize("outer", NASTY_KEYS)
@pytest.mark.parametrize("inner", NASTY_KEYS)
def test_a_violation_below_odd_keys_is_reported_at_its_pointer(outer: str, inner: str) -> None:
    schema = {"properties": {outer: {"items": {"properties": {inner: {"type": "integer"}}}}}}

    [violation] = Validator(schema).find_violations({outer: [{}, {inner: "x"}]})

    assert split_pointer(violation.path) == [outer, "1", inner]


@requirement("d:errors:pointers")
def test_two_violations_that_differ_in_an_empty_key_are_both_reported() -> None:
    text = {"type": "string"}
    schema = {"properties": {"x": {**text, "properties": {"": {**text, "properties": {"": text}}}}}}

    violations = Validator(schema).find_violations({"x": {"": {"": 5}}})

    assert [(v.path, v.message) for v in violations] == [
        ("/x", "expected string"),
        ("/x/", "expected string"),
        ("/x//", "expected string"),
    ]


def test_properties_below_an_odd_key_where_none_is_allowed_are_reported_one_by_one() -> None:
    schema = {"properties": {"": {"properties": {"0": {"additionalProperties": False}}}}}

    violations = Validator(schema).find_violations({"": {"0": {"b": 1, "": 2}}})

    assert [v.path for v in violations] == ["//0/", "//0/b"]


def test_a_required_property_that_is_not_allowed_is_not_reported_as_missing() -> None:
    schema = {"properties": {"a": {}}, "additionalProperties": False, "required": ["b"]}

    assert [v.message for v in Validator(schema).find_violations({"b": 1})] == ['unexpected property "b"']


def test_a_large_value_with_an_empty_key_is_reported_at_its_pointer() -> None:
    schema = {"properties": {"": {"items": {"type": "integer"}}}}

    violations = Validator(schema).find_violations({"": [*range(25_000), "x"]})

    assert [v.path for v in violations] == ["//25000", ""]
