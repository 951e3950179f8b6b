"""Tests of plain schemas: however a place is named and whichever draft is used, verdicts stay true."""

from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cleats.contract.compat import BumpLevel
from cleats.contract.compat.findings import ContractSide
from cleats.contract.compat.plain_schema import to_plain_schema
from cleats.contract.compat.schema_diff import compare_schemas
from conformance.contract.trial import uses_new_names
from tests.contract.compat.test_compat import (
    JSON_VALUES,
    SCHEMA_SIDES,
    SEARCH_SETTINGS,
    schema_edits,
)

Json = Any

NUMBER_NODE, INTEGER_NODE = ({"properties": {"v": {"type": name}}} for name in ("number", "integer"))
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


def build_document(form: str, node: Json) -> Json:
    """Build a document whose property `r` refers to the node in one of several ways."""
    address = "https://x.example/root"
    forms: dict[str, tuple[str, Json]] = {
        "anchor": ("#node", {"$defs": {"n": {"$anchor": "node", **node}}}),
        "percent-encoded pointer": ("#/$defs/Page%3CItem%3E", {"$defs": {"Page<Item>": node}}),
        "own absolute id": (f"{address}#/$defs/n", {"$id": address, "$defs": {"n": node}}),
        "own relative id": ("root#/$defs/n", {"$id": address, "$defs": {"n": node}}),
        "embedded resource": ("node.json", {"$id": address, "$defs": {"n": {"$id": "node.json", **node}}}),
        "anchor of draft 7": ("#node", {**DRAFT_7, "definitions": {"n": {"$id": "#node", **node}}}),
        "pointer into a resource": (
            "node.json#/$defs/inner",
            {"$id": address, "$defs": {"n": {"$id": "node.json", "$defs": {"inner": node}}}},
        ),
        "dynamic anchor": ("#node", {"$defs": {"n": {"$dynamicAnchor": "node", **node}}}),
    }
    ref, document = forms[form]
    keyword = "$dynamicRef" if form == "dynamic anchor" else "$ref"
    return {"type": "object", "properties": {"r": {keyword: ref}}, **document}


FORMS = [
    *("anchor", "percent-encoded pointer", "own absolute id", "own relative id", "embedded resource"),
    *("anchor of draft 7", "pointer into a resource", "dynamic anchor"),
]


@pytest.mark.parametrize("form", FORMS)
def test_a_narrower_target_is_breaking_however_the_reference_is_written(form: str) -> None:
    old, new = build_document(form, NUMBER_NODE), build_document(form, INTEGER_NODE)

    findings = compare_schemas(old, new, ContractSide.INPUT)

    [breaking] = [finding for finding in findings if finding.rule.level is BumpLevel.MAJOR]
    assert breaking.witness is not None
    validator = jsonschema.validators.validator_for(old, jsonschema.Draft202012Validator)
    assert validator(old).is_valid(breaking.witness.instance)
    assert not validator(new).is_valid(breaking.witness.instance)


@pytest.mark.parametrize("form", FORMS)
def test_a_wider_target_is_safe_however_the_reference_is_written(form: str) -> None:
    findings = compare_schemas(
        build_document(form, INTEGER_NODE), build_document(form, NUMBER_NODE), ContractSide.INPUT
    )

    assert [finding.rule.level for finding in findings] == [BumpLevel.MINOR]


@pytest.mark.parametrize("ref", ["#missing", "#/$defs/missing", "other.json", "https://y.example/other"])
def test_a_target_that_is_not_found_is_never_proved_equal(ref: str) -> None:
    old = {"type": "object", "properties": {"r": {"$ref": ref}, "s": {"title": "a"}}}
    new = {"type": "object", "properties": {"r": {"$ref": ref}, "s": {"title": "b"}}}

    levels = {finding.rule.level for finding in compare_schemas(old, new, ContractSide.INPUT)}

    assert BumpLevel.MAJOR in levels


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({**DRAFT_7, "items": [{"type": "string"}]}, {"prefixItems": [{"type": "string"}]}),
        ({**DRAFT_7, "items": [{}], "additionalItems": False}, {"prefixItems": [{}], "items": False}),
        ({**DRAFT_7, "dependencies": {"a": ["b"]}}, {"dependentRequired": {"a": ["b"]}}),
        ({**DRAFT_7, "dependencies": {"a": {"minProperties": 2}}}, {"dependentSchemas": {"a": {"minProperties": 2}}}),
        ({**DRAFT_7, "definitions": {"n": {"type": "null"}}, "$ref": "#/definitions/n"}, {"type": "null"}),
        ({**DRAFT_7, "unevaluatedProperties": False, "prefixItems": [False]}, {}),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True},
            {"exclusiveMinimum": 1},
        ),
        (
            {"$schema": "https://json-schema.org/draft-07/schema", "items": [{"type": "string"}]},
            {"prefixItems": [{"type": "string"}]},
        ),
    ],
)
def test_another_draft_that_means_the_same_is_only_rewritten(old: Json, new: Json) -> None:
    for one, other in ((old, new), (new, old)):
        assert [finding.rule.id for finding in compare_schemas(one, other, ContractSide.INPUT)] == ["INPUT_REWRITTEN"]


@pytest.mark.parametrize("keyword", ["discriminator", "readOnly", "writeOnly", "example", "nullable", "x-order"])
def test_an_annotation_is_only_words(keyword: str) -> None:
    old = {"type": "object", "properties": {"a": {"type": "string"}}}
    new = {"type": "object", "properties": {"a": {"type": "string", keyword: True}}}

    assert [finding.rule.id for finding in compare_schemas(old, new, ContractSide.INPUT)] == ["INPUT_DOCS_CHANGED"]


# Random documents in every form of references


def rename_references(value: Json, form: str) -> Json:
    """Write a document with `$defs` one and two in another form."""
    refs = {
        "anchor": {"#/$defs/one": "#first", "#/$defs/two": "#second"},
        "encoded": {"#/$defs/one": "#/$defs/%6Fne", "#/$defs/two": "#/%24defs/two"},
        "id": {"#/$defs/one": "https://x.example/d#/$defs/one", "#/$defs/two": "d#/$defs/two", "#": "d"},
        "resource": {"#/$defs/one": "one.json", "#/$defs/two": "https://x.example/two.json"},
    }[form]

    def change(part: Json) -> Json:
        if isinstance(part, list):
            return [change(item) for item in part]
        if not isinstance(part, dict):
            return part
        return {
            key: refs.get(item, item) if key == "$ref" and isinstance(item, str) else change(item)
            for key, item in part.items()
        }

    document = change(value)
    names = {"anchor": {"one": {"$anchor": "first"}, "two": {"$anchor": "second"}}}
    names["resource"] = {"one": {"$id": "one.json"}, "two": {"$id": "two.json"}}
    for name, marks in names.get(form, {}).items():
        body = document["$defs"][name]
        document["$defs"][name] = {**marks, **(body if isinstance(body, dict) else {"allOf": [body]})}
    return {"$id": "https://x.example/d", **document} if form in {"id", "resource"} else document


@SEARCH_SETTINGS
@given(
    schema_edits(),
    SCHEMA_SIDES,
    st.sampled_from(["anchor", "encoded", "id", "resource"]),
    st.lists(JSON_VALUES, min_size=5, max_size=15),
)
def test_no_value_contradicts_a_safe_verdict_in_any_form(
    edit: tuple[Json, Json], side: ContractSide, form: str, values: list[Json]
) -> None:
    assume(all(isinstance(document.get("$defs", {}).get("one", True), dict | bool) for document in edit))
    assume(all({"one", "two"} <= document.get("$defs", {}).keys() for document in edit))
    old, new = (rename_references(document, form) for document in edit)
    validators = [jsonschema.Draft202012Validator(document) for document in (old, new)]
    try:
        for validator in validators:
            validator.check_schema(validator.schema)
    except jsonschema.SchemaError:
        assume(False)
    findings = compare_schemas(old, new, side)
    assume(all(finding.rule.level is not BumpLevel.MAJOR for finding in findings))
    small, large = side.order_pair(*validators)
    added_names = {one.pointer.rpartition("/")[2] for one in findings if one.rule.id.endswith("_ADDED")}

    for value in values:
        if not uses_new_names(value, to_plain_schema(old), added_names):
            assert large.is_valid(value) or not small.is_valid(value)
