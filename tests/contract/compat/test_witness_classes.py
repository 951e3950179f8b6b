"""Witnesses for every class of keyword, and verdicts about random changes, checked by another validator."""

from typing import Any

import pytest

from cleats.contract.compat.findings import ContractSide
from cleats.contract.compat.rules import BumpLevel
from cleats.contract.compat.schema_diff import compare_schemas
from conformance.contract.trial import Trial, build_checker, run_trial

Json = Any

TEXT = {"type": "string"}


def build_object(**parts: Json) -> Json:
    return {"type": "object", **parts}


NARROWED_SCHEMAS: dict[str, tuple[Json, Json]] = {
    "if and then": (
        build_object(properties={"a": TEXT, "b": {}}),
        build_object(properties={"a": TEXT, "b": {}}, **{"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
    ),
    "else": (
        {"if": TEXT, "else": {"type": "integer"}},
        {"if": TEXT, "else": {"type": "integer", "multipleOf": 7}},
    ),
    "patternProperties": (
        build_object(patternProperties={"^x_[0-9]{3}$": {}}, additionalProperties=False),
        build_object(patternProperties={"^x_[0-9]{3}$": {"type": "integer"}}, additionalProperties=False),
    ),
    "propertyNames": (
        build_object(propertyNames={"pattern": "^[a-z]+$"}),
        build_object(propertyNames={"pattern": "^[a-m]+$"}),
    ),
    "multipleOf": (
        {"type": "integer", "multipleOf": 6, "minimum": 1000},
        {"type": "integer", "multipleOf": 12, "minimum": 1000},
    ),
    "unevaluatedProperties": (
        {"allOf": [build_object(properties={"a": TEXT})], "properties": {"b": TEXT}},
        {"allOf": [build_object(properties={"a": TEXT})], "properties": {"b": TEXT}, "unevaluatedProperties": False},
    ),
    "unevaluatedItems": (
        {"type": "array", "prefixItems": [TEXT], "unevaluatedItems": {}},
        {"type": "array", "prefixItems": [TEXT], "unevaluatedItems": {"type": "integer"}},
    ),
    "a long limit": ({**TEXT, "maxLength": 5000}, {**TEXT, "maxLength": 4000}),
    "a pattern with a limit": (
        {**TEXT, "maxLength": 40, "pattern": "[0-9]$"},
        {**TEXT, "maxLength": 30, "pattern": "[0-9]$"},
    ),
    "a reference": (
        {"$ref": "#/$defs/n", "$defs": {"n": build_object(properties={"v": {"type": "number"}}, required=["v"])}},
        {"$ref": "#/$defs/n", "$defs": {"n": build_object(properties={"v": {"type": "integer"}}, required=["v"])}},
    ),
    "recursion": (
        build_object(properties={"v": TEXT, "next": {"$ref": "#"}}, required=["v"]),
        build_object(properties={"v": {**TEXT, "minLength": 1}, "next": {"$ref": "#"}}, required=["v"]),
    ),
    "not": ({"not": {"required": ["a", "b"]}}, {"not": {"required": ["a"]}}),
    "a second match in oneOf": (
        {"oneOf": [{"type": "integer", "maximum": 5}, {"type": "integer", "minimum": 10}]},
        {"oneOf": [{"type": "integer", "maximum": 5}, {"type": "integer", "minimum": 3}]},
    ),
    "dependentSchemas": (
        build_object(dependentSchemas={"a": {}}),
        build_object(dependentSchemas={"a": {"properties": {"b": {"type": "integer"}}, "required": ["b"]}}),
    ),
    "contains": (
        {"type": "array", "prefixItems": [TEXT], "contains": {"const": 7}},
        {"type": "array", "prefixItems": [TEXT], "contains": {"const": 7}, "minContains": 2},
    ),
}


@pytest.mark.parametrize("name", NARROWED_SCHEMAS)
def test_a_narrowed_input_has_a_witness_that_another_validator_confirms(name: str) -> None:
    old, new = NARROWED_SCHEMAS[name]

    breaking = [
        finding
        for finding in compare_schemas(old, new, ContractSide.INPUT)
        if finding.rule.level is BumpLevel.MAJOR and finding.witness is not None
    ]

    assert breaking
    for finding in breaking:
        assert finding.witness is not None
        assert build_checker(old).is_valid(finding.witness.instance)
        assert not build_checker(new).is_valid(finding.witness.instance)


def test_an_argument_that_an_open_schema_lets_pass_unknown_is_shown_in_use() -> None:
    old = build_object(properties={"a": TEXT, "limit": {"type": "integer", "minimum": 1}})
    new = build_object(properties={"a": TEXT})

    [finding] = compare_schemas(old, new, ContractSide.INPUT)

    assert finding.rule.id == "INPUT_PROPERTY_REMOVED"
    assert finding.witness is not None
    assert not finding.witness.is_refused
    assert finding.witness.instance == {"limit": 1}


def test_a_change_without_effect_is_not_breaking_beside_one_that_breaks() -> None:
    branch = build_object(properties={"b": {}}, propertyNames={"maxLength": 2})
    old = build_object(properties={"a": {"anyOf": [branch, {"type": "object"}]}, "c": TEXT})
    narrower = {**branch, "propertyNames": {"maxLength": 1}}
    new = build_object(properties={"a": {"anyOf": [narrower, {"type": "object"}]}, "c": {**TEXT, "maxLength": 3}})

    levels = {finding.pointer: finding.rule.level for finding in compare_schemas(old, new, ContractSide.INPUT)}

    assert levels == {
        "/properties/a/anyOf/0/propertyNames": BumpLevel.PATCH,
        "/properties/c": BumpLevel.MAJOR,
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            build_object(properties={"b": build_object(additionalProperties=False), "next": {"$ref": "#"}}),
            build_object(properties={"b": build_object(additionalProperties=TEXT), "next": {"$ref": "#"}}),
        ),
        (
            build_object(properties={"a": {"type": "integer", "minimum": 2}}, unevaluatedProperties={"$ref": "#"}),
            build_object(properties={"a": {"type": "integer", "minimum": 1}}, unevaluatedProperties={"$ref": "#"}),
        ),
        (
            build_object(
                properties={"a": TEXT, "r": {"if": {"$ref": "#/$defs/n"}, "then": TEXT}},
                **{"$defs": {"n": build_object(properties={"n": {"$ref": "#/$defs/n"}}, unevaluatedProperties=False)}},
            ),
            build_object(
                properties={"a": {}, "r": {"if": {"$ref": "#/$defs/n"}, "then": TEXT}},
                **{"$defs": {"n": build_object(properties={"n": {"$ref": "#/$defs/n"}}, unevaluatedProperties=False)}},
            ),
        ),
    ],
)
def test_a_wider_part_of_a_recursive_input_is_proved_safe(old: Json, new: Json) -> None:
    levels = {finding.rule.level for finding in compare_schemas(old, new, ContractSide.INPUT)}

    assert levels == {BumpLevel.MINOR}


def test_an_unevaluated_keyword_that_applies_to_more_is_not_taken_for_unchanged() -> None:
    old = {**build_object(unevaluatedProperties=False, additionalProperties=True), "properties": {"n": {"$ref": "#"}}}
    new = {**build_object(unevaluatedProperties=False), "properties": {"n": {"$ref": "#"}}}

    assert any(finding.rule.level is BumpLevel.MAJOR for finding in compare_schemas(old, new, ContractSide.INPUT))


FUZZED_PAIRS = 60
"""Enough to notice a broken fuzzer; `python -m conformance.contract` runs thousands."""


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    found = (run_trial(f"tests:{number}") for number in range(4 * FUZZED_PAIRS))
    return [trial for trial in found if trial is not None][:FUZZED_PAIRS]


def test_no_fuzzed_verdict_is_unsafe_and_every_fuzzed_witness_is_true(trials: list[Trial]) -> None:
    assert len(trials) == FUZZED_PAIRS
    assert [trial.describe() for trial in trials if trial.is_unsafe or trial.false_witnesses] == []
    assert {"draft-07", "recursion", "references", "unevaluated"} <= {name for one in trials for name in one.features}


def test_the_fuzzer_sees_an_unsafe_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.contract.trial.compare_schemas", lambda *_args, **_options: [])

    trials = [run_trial(f"tests:{number}") for number in range(40)]

    assert any(trial is not None and trial.is_unsafe for trial in trials)
