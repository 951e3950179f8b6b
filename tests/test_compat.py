"""Comparing contracts: every rule, both policies, and no safe verdict that a value contradicts."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cleats.contract.compat import (
    RULES,
    Level,
    Proof,
    Report,
    SnapshotError,
    compare,
    markdown,
    render,
    sarif,
)
from cleats.contract.compat.judge import judge
from cleats.contract.compat.schemas import Walk
from cleats.contract.compat.sides import Side
from tests.requirements import requirement

Json = Any

STRING = {"type": "string"}
NUMBER = {"type": "integer"}


def arguments(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def result(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def tool(**parts: Json) -> Json:
    return {
        "description": "Find something.",
        "schemaVersion": 1,
        "inputSchema": arguments(query=STRING, required=("query",)),
        "outputSchema": result(hits=STRING, required=("hits",)),
        "annotations": {"readOnlyHint": True},
        "errors": ["NO_INDEX"],
        **parts,
    }


def contract(version: str | None = "2.0.0", tools: Json = None, **parts: Json) -> Json:
    return {
        "snapshot": 1,
        "schemaVersion": version,
        "semantics": {"timeout": "The work is stopped."},
        "errors": {"NO_INDEX": error(409), "INTERNAL": error(500)},
        "tools": {"search": tool()} if tools is None else tools,
        **parts,
    }


def error(http: int, **parts: Json) -> Json:
    return {
        "http": http,
        "rpc": -32000,
        "retryable": False,
        "meaning": "It failed.",
        "remedy": "Try again.",
        **parts,
    }


def changed(before: Json, after: Json) -> Report:
    """The report on a tool that had some parts and then others."""
    old, new = (contract(tools={"search": tool(**parts)}) for parts in (before, after))
    return compare(old, new)


def rules_of(report: Report) -> list[str]:
    return [found.rule.id for found in report.findings]


# Every rule has a before and an after

ENVELOPE: Json = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "note": STRING},
    "required": ["ok"],
    "additionalProperties": False,
}
FILES = tool(inputSchema=arguments(path=STRING, line=NUMBER))
NODE = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}


def envelope(**parts: Json) -> Json:
    return {"envelope": {**ENVELOPE, **parts}}


def inputs(**properties: Json) -> Json:
    return {"inputSchema": arguments(**properties)}


def outputs(**properties: Json) -> Json:
    return {"outputSchema": result(**properties)}


OF_A_TOOL: Mapping[str, tuple[Json, Json]] = {
    "TOOLSET_CHANGED": ({"toolset": "code"}, {"toolset": "skills"}),
    "ALIAS_ADDED": ({"aliases": []}, {"aliases": [{"name": "find", "deprecated": "2.0.0"}]}),
    "ALIAS_REMOVED": ({"aliases": [{"name": "find", "deprecated": "2.0.0"}]}, {"aliases": []}),
    "ALIAS_DEPRECATION_CHANGED": (
        {"aliases": [{"name": "find", "deprecated": "2.0.0"}]},
        {"aliases": [{"name": "find", "deprecated": "2.1.0"}]},
    ),
    "INPUT_REQUIRED_ADDED": (inputs(a=STRING), inputs(a=STRING, required=("a",))),
    "INPUT_REQUIRED_REMOVED": (inputs(a=STRING, required=("a",)), inputs(a=STRING)),
    "INPUT_PROPERTY_ADDED": (inputs(a=STRING), inputs(a=STRING, b=STRING)),
    "INPUT_PROPERTY_REMOVED": (inputs(a=STRING, b=NUMBER), inputs(a=STRING)),
    "INPUT_PROPERTY_RENAMED": (inputs(a=STRING), inputs(b=STRING)),
    "INPUT_TYPE_CHANGED": (inputs(a=STRING), inputs(a=NUMBER)),
    "INPUT_NARROWED": (inputs(a={"enum": ["x", "y"]}), inputs(a={"enum": ["x"]})),
    "INPUT_WIDENED": (inputs(a={"enum": ["x"]}), inputs(a={"enum": ["x", "y"]})),
    "INPUT_DEFAULT_CHANGED": (
        inputs(a={**NUMBER, "default": 1}),
        inputs(a={**NUMBER, "default": 2}),
    ),
    "INPUT_MEANING_CHANGED": (inputs(a=NUMBER), inputs(a={**NUMBER, "x-meaning": 2})),
    "INPUT_REWRITTEN": (inputs(a={"enum": ["x"]}), inputs(a={"const": "x"})),
    "INPUT_DOCS_CHANGED": (inputs(a=STRING), inputs(a={**STRING, "description": "A word."})),
    "OUTPUT_SCHEMA_ADDED": ({"outputSchema": None}, outputs(a=STRING)),
    "OUTPUT_SCHEMA_REMOVED": (outputs(a=STRING), {"outputSchema": None}),
    "OUTPUT_REQUIRED_ADDED": (outputs(a=STRING), outputs(a=STRING, required=("a",))),
    "OUTPUT_REQUIRED_REMOVED": (outputs(a=STRING, required=("a",)), outputs(a=STRING)),
    "OUTPUT_PROPERTY_ADDED": (outputs(a=STRING), outputs(a=STRING, b=STRING)),
    "OUTPUT_PROPERTY_REMOVED": (outputs(a=STRING, b=NUMBER), outputs(a=STRING)),
    "OUTPUT_PROPERTY_RENAMED": (outputs(a=STRING), outputs(b=STRING)),
    "OUTPUT_TYPE_CHANGED": (outputs(a=STRING), outputs(a={"type": ["string", "null"]})),
    "OUTPUT_WIDENED": (outputs(a={"enum": ["x"]}), outputs(a={"enum": ["x", "y"]})),
    "OUTPUT_NARROWED": (outputs(a={"enum": ["x", "y"]}), outputs(a={"enum": ["x"]})),
    "OUTPUT_MEANING_CHANGED": (
        outputs(a={**STRING, "contentEncoding": "base64"}),
        outputs(a={**STRING, "contentEncoding": "base32"}),
    ),
    "OUTPUT_REWRITTEN": (outputs(a={"enum": ["x"]}), outputs(a={"const": "x"})),
    "OUTPUT_DOCS_CHANGED": (outputs(a=STRING), outputs(a={**STRING, "title": "A"})),
    "PAYLOAD_CHANGED": ({"payload": "envelope"}, {"payload": "content"}),
    "TOOL_ERROR_ADDED": ({"errors": []}, {"errors": ["NO_INDEX"]}),
    "TOOL_ERROR_REMOVED": ({"errors": ["NO_INDEX"]}, {"errors": []}),
    "TIMEOUT_LOWERED": ({"timeoutMs": 2000}, {"timeoutMs": 1000}),
    "TIMEOUT_RAISED": ({"timeoutMs": 2000}, {"timeoutMs": None}),
    "ANNOTATION_LESS_SAFE": (
        {"annotations": {"readOnlyHint": True}},
        {"annotations": {"readOnlyHint": False}},
    ),
    "ANNOTATION_SAFER": (
        {"annotations": {"openWorldHint": True}},
        {"annotations": {"openWorldHint": False}},
    ),
    "ANNOTATION_CHANGED": ({"annotations": {"title": "A"}}, {"annotations": {"title": "B"}}),
    "DESCRIPTION_CHANGED": ({"description": "Find it."}, {"description": "Find this."}),
    "TITLE_CHANGED": ({"title": "A"}, {"title": "B"}),
    "EXAMPLES_CHANGED": ({"examples": []}, {"examples": [{"query": "x"}]}),
    "CANNOT_PROVE_SAFE": (inputs(a={"x-magic": 1}), inputs(a={"x-magic": 2})),
}

OF_THE_CONTRACT: Mapping[str, tuple[Json, Json]] = {
    "TOOL_ADDED": ({"tools": {}}, {"tools": {"search": tool()}}),
    "TOOL_REMOVED": ({"tools": {"search": tool()}}, {"tools": {}}),
    "TOOL_RENAMED": (
        {"tools": {"search": tool()}},
        {"tools": {"find": tool(aliases=[{"name": "search", "deprecated": "3.0.0"}])}},
    ),
    "TOOL_RENAMED_WITHOUT_ALIAS": ({"tools": {"search": tool()}}, {"tools": {"find": tool()}}),
    "ENVELOPE_ADDED": ({}, envelope()),
    "ENVELOPE_FIELD_ADDED": (
        envelope(),
        envelope(properties={**ENVELOPE["properties"], "more": STRING}),
    ),
    "ENVELOPE_FIELD_PROMISED": (envelope(), envelope(required=["ok", "note"])),
    "ENVELOPE_CHANGED": (envelope(), envelope(required=[])),
    "ENVELOPE_NARROWED": (envelope(), envelope(maxProperties=1)),
    "ENVELOPE_DOCS_CHANGED": (envelope(), envelope(description="Around every answer.")),
    "ERROR_ADDED": (
        {"errors": {"INTERNAL": error(500)}},
        {"errors": {"INTERNAL": error(500), "BUSY": error(503)}},
    ),
    "ERROR_REMOVED": (
        {"errors": {"INTERNAL": error(500), "BUSY": error(503)}},
        {"errors": {"INTERNAL": error(500)}},
    ),
    "ERROR_RENAMED": ({"errors": {"BUSY": error(503)}}, {"errors": {"FULL": error(503)}}),
    "ERROR_CHANGED": ({"errors": {"BUSY": error(503)}}, {"errors": {"BUSY": error(429)}}),
    "ERROR_DOCS_CHANGED": (
        {"errors": {"BUSY": error(503)}},
        {"errors": {"BUSY": error(503, meaning="Too much to do.")}},
    ),
    "SEMANTICS_ADDED": ({"semantics": {}}, {"semantics": {"cancellation": "It stops."}}),
    "SEMANTICS_CHANGED": ({"semantics": {"timeout": "stop"}}, {"semantics": {"timeout": "go"}}),
    "SEMANTICS_REMOVED": ({"semantics": {"timeout": "stop"}}, {"semantics": {}}),
    "INSTRUCTIONS_CHANGED": ({"instructions": "Search."}, {"instructions": "Search first."}),
    "SERVER_CHANGED": (
        {"server": {"name": "x", "version": "1"}},
        {"server": {"name": "x", "version": "2"}},
    ),
}


def report_on(rule: str, version: str = "2.0.0", integer: int = 1) -> Report:
    """The report on a rule's before and after, which states these versions."""
    if rule in OF_A_TOOL:
        before, after = OF_A_TOOL[rule]
        after = {**after, "schemaVersion": integer}
        old, new = ({"tools": {"search": _without_none(tool(**p))}} for p in (before, after))
    else:
        before, after = OF_THE_CONTRACT[rule]
        tools = after.get("tools", {"search": tool()})
        raised = {name: {**entry, "schemaVersion": integer} for name, entry in tools.items()}
        old, new = before, {**after, "tools": raised}
    return compare({**contract(), **old}, {**contract(version), **new})


def _without_none(entry: Json) -> Json:
    return {key: part for key, part in entry.items() if part is not None or key == "timeoutMs"}


EVERY_RULE = pytest.mark.parametrize("rule", RULES)


def test_each_rule_has_exactly_one_before_and_after() -> None:
    assert sorted([*OF_A_TOOL, *OF_THE_CONTRACT]) == sorted(RULES)


@EVERY_RULE
def test_a_change_is_found_by_its_rule_and_by_no_other(rule: str) -> None:
    assert rules_of(report_on(rule)) == [rule]


@EVERY_RULE
def test_a_change_without_its_bumps_is_refused(rule: str) -> None:
    report = report_on(rule)

    assert report.required is RULES[rule].level
    assert report.ok is (report.required is Level.NONE)
    owes_integer = any("its schemaVersion has to rise" in sentence for sentence in report.missing)
    assert owes_integer is RULES[rule].integer


@EVERY_RULE
def test_a_change_with_its_bumps_is_accepted(rule: str) -> None:
    bumped = {"none": "2.0.0", "patch": "2.0.1", "minor": "2.1.0", "major": "3.0.0"}
    level = RULES[rule].level

    report = report_on(rule, bumped[level], integer=2 if RULES[rule].integer else 1)

    assert report.missing == ()
    assert report.declared is level


@EVERY_RULE
def test_every_bump_short_of_the_right_one_is_refused(rule: str) -> None:
    too_small = {"minor": ["2.0.0", "2.0.1"], "major": ["2.0.9", "2.9.0"], "patch": ["2.0.0"]}

    for version in too_small.get(RULES[rule].level, []):
        assert not report_on(rule, version, integer=2).ok


# Spec a §2.2: when the tool's integer has to rise


def integer_owed(report: Report, name: str = "search") -> bool:
    return any(s.startswith(f"{name}: its schemaVersion has to rise") for s in report.missing)


@requirement("a:bump:required-argument")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (inputs(a=STRING), inputs(a=STRING, required=("a",))),
        (inputs(), inputs(a=STRING, required=("a",))),
        (
            inputs(a=arguments(b=STRING)),
            inputs(a=arguments(b=STRING, required=("b",))),
        ),
    ],
    ids=["of an optional one", "of a new one", "inside another"],
)
def test_an_added_required_argument_needs_a_higher_integer(before: Json, after: Json) -> None:
    assert integer_owed(changed(before, after))


@requirement("a:bump:meaning")
def test_a_raised_meaning_needs_a_higher_integer() -> None:
    stated = {**NUMBER, "x-meaning": 1}

    assert integer_owed(changed(inputs(a=stated), inputs(a={**NUMBER, "x-meaning": 2})))
    assert not integer_owed(changed(inputs(a=NUMBER), inputs(a=stated)))


@requirement("a:bump:default")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"default": 1}, {"default": 2}),
        ({}, {"default": 1}),
        ({"default": 1}, {}),
        ({"default": 1}, {"default": True}),
        ({}, {"default": None}),
    ],
    ids=["changed", "stated", "no longer stated", "true is not 1", "null is not absent"],
)
def test_a_changed_default_needs_a_higher_integer(old: Json, new: Json) -> None:
    assert integer_owed(changed(inputs(a=old), inputs(a=new)))


@requirement("a:bump:result")
@pytest.mark.parametrize(
    "rule",
    [
        "OUTPUT_REQUIRED_ADDED",
        "OUTPUT_REQUIRED_REMOVED",
        "OUTPUT_PROPERTY_RENAMED",
        "OUTPUT_PROPERTY_REMOVED",
        "OUTPUT_TYPE_CHANGED",
        "ENVELOPE_FIELD_PROMISED",
    ],
)
def test_a_changed_result_structure_needs_a_higher_integer(rule: str) -> None:
    assert integer_owed(report_on(rule))


@requirement("a:bump:error-codes")
@pytest.mark.parametrize(
    "rule",
    ["TOOL_ERROR_ADDED", "TOOL_ERROR_REMOVED", "ERROR_ADDED", "ERROR_REMOVED", "ERROR_RENAMED"],
)
def test_an_added_removed_or_renamed_error_code_needs_a_higher_integer(rule: str) -> None:
    assert integer_owed(report_on(rule))


def test_an_error_code_touches_the_tools_that_list_it_and_no_others() -> None:
    tools = {"search": tool(errors=["NO_INDEX"]), "status": tool(errors=[])}
    old = contract(tools=tools)
    new = contract(tools=tools, errors={**old["errors"], "NO_INDEX": error(404)})

    report = compare(old, new)

    assert integer_owed(report, "search")
    assert not integer_owed(report, "status")


def test_an_error_code_that_no_tool_lists_touches_them_all() -> None:
    tools = {"search": tool(), "status": tool(errors=[])}
    old = contract(tools=tools)
    new = contract(tools=tools, errors={**old["errors"], "INTERNAL": error(503)})

    report = compare(old, new)

    assert integer_owed(report, "search")
    assert integer_owed(report, "status")


def test_an_error_code_for_a_new_tool_touches_no_old_one() -> None:
    old = contract()
    new = contract(
        tools={**old["tools"], "build": tool(errors=["BUSY"], inputSchema=inputs())},
        errors={**old["errors"], "BUSY": error(503)},
    )

    assert not integer_owed(compare(old, new))


@requirement("a:bump:cancel-timeout")
@pytest.mark.parametrize("rule", ["SEMANTICS_CHANGED", "TIMEOUT_LOWERED", "TIMEOUT_RAISED"])
def test_changed_cancellation_or_timeout_needs_a_higher_integer(rule: str) -> None:
    assert integer_owed(report_on(rule))


@requirement("a:bump:cancel-timeout")
@pytest.mark.parametrize("name", ["cancellation", "timeout"])
def test_changed_semantics_need_a_higher_integer_of_every_tool(name: str) -> None:
    tools = {"search": tool(), "status": tool()}

    report = compare(
        contract(tools=tools, semantics={name: "one answer"}),
        contract(tools=tools, semantics={name: "no answer"}),
    )

    assert integer_owed(report, "search")
    assert integer_owed(report, "status")


@requirement("a:no-bump:docs")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"description": "Find."}, {"description": "Find things."}),
        (inputs(a=STRING), inputs(a={**STRING, "description": "A word."})),
        (outputs(a=STRING), outputs(a={**STRING, "description": "A word."})),
        ({"examples": []}, {"examples": [{"query": "x"}]}),
    ],
    ids=["description", "argument", "result", "examples"],
)
def test_a_clarified_text_needs_no_higher_integer(before: Json, after: Json) -> None:
    report = changed(before, after)

    assert report.findings
    assert not integer_owed(report)


@requirement("a:no-bump:optional-argument")
@pytest.mark.parametrize(
    "argument", [STRING, {**NUMBER, "default": 5}], ids=["plain", "with a default"]
)
def test_an_optional_argument_needs_no_higher_integer(argument: Json) -> None:
    assert not integer_owed(changed(inputs(a=STRING), inputs(a=STRING, b=argument)))


@requirement("a:no-bump:optional-result")
@pytest.mark.parametrize("closed", [True, False])
def test_an_optional_result_field_needs_no_higher_integer(*, closed: bool) -> None:
    before, after = ({**outputs(a=STRING)["outputSchema"]}, outputs(a=STRING, b=STRING))
    if closed:
        before["additionalProperties"] = False
        after["outputSchema"]["additionalProperties"] = False

    report = changed({"outputSchema": before}, after)

    assert rules_of(report) == ["OUTPUT_PROPERTY_ADDED"]
    assert not integer_owed(report)


@requirement("a:names:rename-is-breaking")
@pytest.mark.parametrize("rule", ["TOOL_RENAMED", "TOOL_RENAMED_WITHOUT_ALIAS"])
def test_a_rename_is_breaking_and_needs_a_higher_integer(rule: str) -> None:
    report = report_on(rule)

    assert report.required is Level.MAJOR
    assert integer_owed(report, "find")


def test_an_integer_never_falls_whatever_else_happened() -> None:
    report = changed({"schemaVersion": 3}, {"schemaVersion": 2})

    assert report.missing == ("search: its schemaVersion fell from 3 to 2.",)


def test_an_integer_may_rise_for_no_reason_but_not_go_away() -> None:
    assert changed({"schemaVersion": 3}, {"schemaVersion": 7}).ok
    assert not changed({"schemaVersion": 3}, {"schemaVersion": None}).ok


# Spec b §3.3: how far the contract's version has to rise


@requirement("b:semver:major-names", "b:tools:removed-or-renamed-is-major")
@pytest.mark.parametrize(
    "rule", ["TOOL_REMOVED", "TOOL_RENAMED", "TOOL_RENAMED_WITHOUT_ALIAS", "ALIAS_REMOVED"]
)
def test_a_lost_name_is_major(rule: str) -> None:
    assert report_on(rule).required is Level.MAJOR


@requirement("b:semver:major-input")
@pytest.mark.parametrize(
    "rule",
    [
        "INPUT_PROPERTY_REMOVED",
        "INPUT_PROPERTY_RENAMED",
        "INPUT_TYPE_CHANGED",
        "INPUT_DEFAULT_CHANGED",
        "INPUT_REQUIRED_ADDED",
        "INPUT_NARROWED",
    ],
)
def test_a_broken_input_is_major(rule: str) -> None:
    assert report_on(rule).required is Level.MAJOR


@requirement("b:semver:major-input")
def test_an_argument_that_is_removed_from_an_open_schema_is_major_though_nothing_is_refused() -> (
    None
):
    before, after = ({"type": "object", "properties": p} for p in ({"a": STRING}, {}))

    report = changed({"inputSchema": before}, {"inputSchema": after})

    assert rules_of(report) == ["INPUT_PROPERTY_REMOVED"]
    assert report.required is Level.MAJOR


@requirement("b:semver:major-envelope")
@pytest.mark.parametrize(
    "after",
    [
        {"required": []},
        {"properties": {"ok": {"type": "boolean"}}},
        {"properties": {"ok": {"type": "string"}, "note": STRING}},
        {"properties": {"fine": {"type": "boolean"}, "note": STRING}},
        {"properties": {**ENVELOPE["properties"], "note": {**STRING, "x-meaning": 2}}},
    ],
    ids=["sometimes absent", "removed", "retyped", "renamed", "meaning"],
)
def test_a_changed_envelope_is_major(after: Json) -> None:
    report = compare(contract(**envelope()), contract(**envelope(**after)))

    assert report.required is Level.MAJOR
    assert integer_owed(report)


@requirement("b:semver:minor-additions")
@pytest.mark.parametrize(
    "rule",
    ["TOOL_ADDED", "INPUT_PROPERTY_ADDED", "OUTPUT_PROPERTY_ADDED", "ENVELOPE_FIELD_ADDED"],
)
def test_an_optional_addition_is_minor(rule: str) -> None:
    assert report_on(rule).required is Level.MINOR


@requirement("b:semver:minor-additions")
def test_an_optional_argument_is_minor_though_an_open_schema_let_anything_pass_under_its_name() -> (
    None
):
    before, after = ({"type": "object", "properties": p} for p in ({}, {"a": STRING}))

    report = changed({"inputSchema": before}, {"inputSchema": after})

    assert rules_of(report) == ["INPUT_PROPERTY_ADDED"]


def test_a_new_argument_that_takes_a_name_from_a_map_is_major() -> None:
    before = {"type": "object", "additionalProperties": NUMBER}
    after = {**before, "properties": {"a": STRING}}

    report = changed({"inputSchema": before}, {"inputSchema": after})

    assert report.required is Level.MAJOR


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"allOf": [{"properties": {"a": STRING}}]}, {"properties": {"a": NUMBER}}),
        ({"required": ["a"]}, {"properties": {"a": NUMBER}}),
        ({"patternProperties": {"^a": STRING}}, {"properties": {"a": NUMBER}}),
        (
            {
                "properties": {"o": {"properties": {"a": STRING}}},
                "allOf": [{"properties": {"o": {}}}],
            },
            {"allOf": [{"properties": {"o": {"properties": {"a": NUMBER}}}}]},
        ),
        (
            {"$ref": "#/$defs/o", "required": ["a"], "$defs": {"o": {}}},
            {"$defs": {"o": {"properties": {"a": NUMBER}}}},
        ),
    ],
    ids=["beside", "required", "by a pattern", "inside", "by a reference"],
)
def test_a_name_that_the_old_schema_spoke_of_is_no_addition(before: Json, after: Json) -> None:
    report = changed({"inputSchema": before}, {"inputSchema": {**before, **after}})

    assert report.required is Level.MAJOR


@requirement("b:semver:patch-editorial")
@pytest.mark.parametrize(
    "rule", ["DESCRIPTION_CHANGED", "INPUT_DOCS_CHANGED", "EXAMPLES_CHANGED", "ERROR_DOCS_CHANGED"]
)
def test_an_editorial_change_is_patch(rule: str) -> None:
    assert report_on(rule).required is Level.PATCH


@pytest.mark.parametrize(
    ("old", "new", "declared"),
    [
        ("2.0.0", "2.0.0", "none"),
        ("2.0.0", "2.0.1", "patch"),
        ("2.0.9", "2.1.0", "minor"),
        ("2.9.9", "3.0.0", "major"),
        ("2.10.0", "2.9.0", "none"),
        ("2.0.0", "10.0.0", "major"),
        (None, "2.0.0", None),
        ("2.0.0", "two", "none"),
    ],
)
def test_the_declared_bump_is_read_from_the_two_versions(
    old: str | None, new: str | None, declared: str | None
) -> None:
    assert compare(contract(old), contract(new)).declared == declared


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("2.1.0", "2.0.0", "fell from 2.1.0 to 2.0.0"),
        ("2.0.0", None, "is gone"),
        ("2.0.0", "two", "not a SemVer version"),
    ],
)
def test_a_version_that_falls_goes_or_is_none_is_refused(
    old: str, new: str | None, why: str
) -> None:
    [sentence] = compare(contract(old), contract(new)).missing

    assert why in sentence


def test_a_server_without_a_version_may_add_but_not_break() -> None:
    broken = contract(None, tools={})

    assert compare(broken, contract(None)).ok
    assert not compare(contract(None), broken).ok


# Renames


def test_a_tool_that_moved_behind_an_alias_is_compared_under_its_new_name() -> None:
    after = tool(
        aliases=[{"name": "search", "deprecated": "3.0.0"}],
        inputSchema=arguments(query=NUMBER, required=("query",)),
    )

    report = compare(contract(), contract(tools={"find": after}))

    assert rules_of(report) == ["TOOL_RENAMED", "INPUT_TYPE_CHANGED"]
    assert {found.tool for found in report.findings} == {"find"}


def test_tools_without_arguments_are_not_taken_for_one_another() -> None:
    empty = {"inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
    old = contract(tools={"stop": tool(description="Stop.", **empty)})
    new = contract(tools={"start": tool(description="Start.", **empty)})

    assert rules_of(compare(old, new)) == ["TOOL_ADDED", "TOOL_REMOVED"]


def test_a_name_and_its_alias_can_change_places() -> None:
    old = contract(tools={"search": tool(aliases=[{"name": "find", "deprecated": "1.0.0"}])})
    new = contract(tools={"find": tool(aliases=[{"name": "search", "deprecated": "3.0.0"}])})

    assert rules_of(compare(old, new)) == ["TOOL_RENAMED"]


# What proof adds to reading


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"exclusiveMinimum": 0, "type": "integer"}, {"minimum": 1, "type": "integer"}),
        ({"anyOf": [STRING, NUMBER]}, {"type": ["integer", "string"]}),
        ({"allOf": [{"minimum": 1}, {"minimum": 3}]}, {"minimum": 3}),
        ({"$ref": "#/properties/b"}, {"type": "string"}),
        ({"$ref": "#/properties/b"}, {"allOf": [{"$ref": "#/properties/b"}]}),
        (result(c=STRING), {"allOf": [result(c=STRING)]}),
    ],
)
def test_the_same_in_other_words_is_only_rewritten(old: Json, new: Json) -> None:
    report = changed(inputs(a=old, b=STRING), inputs(a=new, b=STRING))

    assert set(rules_of(report)) == {"INPUT_REWRITTEN"}


def test_what_looks_narrower_in_one_place_but_is_not_as_a_whole_is_safe() -> None:
    old = {"type": "object", "properties": {"a": NUMBER}, "minProperties": 1}
    new = {"type": "object", "properties": {"a": NUMBER}, "anyOf": [{"minProperties": 0}]}

    report = changed({"inputSchema": old}, {"inputSchema": new})

    assert report.required is Level.MINOR


def test_a_recursive_schema_that_takes_more_is_proved_part_by_part() -> None:
    kids = {"type": "array", "items": {"$ref": "#"}}
    old = {"type": "object", "properties": {"kids": {**kids, "maxItems": 2}}}
    new = {"type": "object", "properties": {"kids": kids}}

    [found] = changed({"inputSchema": old}, {"inputSchema": new}).findings

    assert (found.rule.id, found.proof) == ("INPUT_WIDENED", Proof.STRUCTURAL)


def test_what_nobody_can_decide_counts_as_breaking_and_says_so() -> None:
    old = inputs(a={"type": "string", "pattern": "^(?=.*x{40})(?=.*y{40}).*$"})
    new = inputs(a={"type": "string", "pattern": "^(?=.*y{40})(?=.*x{40}).*$"})

    [found] = changed(old, new).findings

    assert found.rule.id == "CANNOT_PROVE_SAFE"
    assert found.proof is Proof.UNPROVEN
    assert "Cannot be proved safe" in render(changed(old, new))


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "strnig"},
        {"$schema": "https://example.org/a-dialect-of-its-own"},
        {"$ref": "https://example.org/elsewhere"},
        {"pattern": "("},
    ],
)
def test_a_schema_that_cannot_be_read_is_never_called_safe(odd: Json) -> None:
    report = changed(inputs(a=STRING), inputs(a=odd))

    assert "CANNOT_PROVE_SAFE" in rules_of(report) or "INPUT_TYPE_CHANGED" in rules_of(report)
    assert report.required is Level.MAJOR


def test_a_schema_that_the_prover_would_not_survive_is_not_shown_to_it() -> None:
    itself = {"$ref": "#", "unevaluatedProperties": {}}
    old = {"oneOf": [{"oneOf": [{"properties": {"c": itself}}, {}]}]}

    report = changed({"inputSchema": old}, {"inputSchema": {**old, "minProperties": 1}})

    assert report.required is Level.MAJOR


def test_a_schema_that_meets_itself_everywhere_is_compared_in_no_time() -> None:
    def family(least: int) -> Json:
        members = {f"child{number}": {"$ref": "#"} for number in range(8)}
        return {"type": "object", "properties": {**members, "age": {"minimum": least}}}

    [found] = changed({"inputSchema": family(0)}, {"inputSchema": family(1)}).findings

    assert found.witness is not None
    assert found.witness.instance == {"age": 0}


def test_a_format_is_taken_at_its_word_in_both_directions() -> None:
    plain, dated = {"type": "string"}, {"type": "string", "format": "date"}

    assert rules_of(changed(inputs(a=plain), inputs(a=dated))) == ["INPUT_NARROWED"]
    assert rules_of(changed(outputs(a=dated), outputs(a=plain))) == ["OUTPUT_WIDENED"]


def test_a_reserved_argument_counts_as_refused() -> None:
    reserved = {**STRING, "x-reserved": True}

    assert rules_of(changed(inputs(a=STRING), inputs(a=reserved))) == ["INPUT_NARROWED"]
    assert rules_of(changed(inputs(a=reserved), inputs(a=STRING))) == ["INPUT_WIDENED"]
    assert rules_of(changed(inputs(a=reserved), inputs())) == ["INPUT_REWRITTEN"]


def test_another_draft_that_says_the_same_is_only_rewritten() -> None:
    old = {**arguments(a=STRING), "$schema": "http://json-schema.org/draft-07/schema#"}
    new = {**arguments(a=STRING), "$schema": "https://json-schema.org/draft/2020-12/schema"}

    assert rules_of(changed({"inputSchema": old}, {"inputSchema": new})) == ["INPUT_REWRITTEN"]


def test_another_draft_that_reads_the_same_words_differently_is_not_safe() -> None:
    # Draft 7 does not look at what stands beside a reference.
    words = {
        "definitions": {"any": {}},
        "properties": {"a": {"$ref": "#/definitions/any", "minimum": 5}},
    }
    old = {**words, "$schema": "http://json-schema.org/draft-07/schema#"}
    new = {**words, "$schema": "https://json-schema.org/draft/2020-12/schema"}

    report = changed({"inputSchema": old}, {"inputSchema": new})

    assert report.required is Level.MAJOR


def test_an_envelope_change_is_told_once_and_not_for_every_tool() -> None:
    def wrapped(wrapper: Json) -> Json:
        properties = {**wrapper["properties"], "result": result(a=STRING)}
        around = {**wrapper, "properties": properties}
        return tool(outputSchema=around, payload="envelope")

    old = {**ENVELOPE, "properties": {**ENVELOPE["properties"], "result": {"type": "object"}}}
    new = {**old, "required": ["ok", "note"]}

    report = compare(
        contract(tools={"search": wrapped(old)}, envelope=old),
        contract(tools={"search": wrapped(new)}, envelope=new),
    )

    assert rules_of(report) == ["ENVELOPE_FIELD_PROMISED"]


# Witnesses


def opinion(schema: Json) -> Callable[[Json], bool]:
    """What another validator thinks than the one that made the witness."""
    formats = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = jsonschema.Draft202012Validator(schema, format_checker=formats)
    return lambda value: bool(validator.is_valid(value))


def accepts(schema: Json, value: Json) -> bool:
    return opinion(schema)(value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (arguments(a=STRING), arguments(a=STRING, required=("a",))),
        (arguments(a=STRING), arguments()),
        (arguments(a=STRING), arguments(b=STRING)),
        (arguments(a=STRING), arguments(a=NUMBER)),
        (arguments(a={"enum": ["x", "y"]}), arguments(a={"enum": ["x"]})),
        (arguments(a={"type": "integer", "maximum": 9}), arguments(a={"maximum": 8})),
        (arguments(a=STRING), arguments(a={**STRING, "maxLength": 300})),
        (arguments(a=STRING), arguments(a={**STRING, "pattern": "^[a-z]+$"})),
        (arguments(a=STRING), arguments(a={**STRING, "format": "date"})),
        (arguments(a={"items": STRING}), arguments(a={"items": STRING, "maxItems": 2})),
        ({"type": "object"}, {"type": "object", "additionalProperties": False}),
        (NODE, {**NODE, "maxProperties": 0}),
    ],
)
def test_a_witness_was_accepted_before_and_is_refused_now(old: Json, new: Json) -> None:
    report = changed({"inputSchema": old}, {"inputSchema": new})

    [found] = report.at_least(Level.MAJOR)
    assert found.witness is not None
    assert accepts(old, found.witness.instance)
    assert not accepts(new, found.witness.instance)


def test_a_witness_holds_against_the_contract_as_it_was_and_not_as_it_is_forgiven() -> None:
    # Every object fits both branches, and so neither alone. That a caller has no `c` to send is
    # forgiven in the first branch, and then an object with a `c` would fit the second alone.
    anything = {"minItems": 1}
    closed = {"properties": {"c": {"const": 1}}, "additionalProperties": {"const": 0, "minimum": 1}}
    old = {"oneOf": [{"type": "object"}, anything]}
    new = {"oneOf": [{"type": "object", **closed}, anything]}

    found = changed({"inputSchema": old}, {"inputSchema": new}).findings

    witnesses = [one.witness.instance for one in found if one.witness is not None]
    assert all(accepts(old, value) and not accepts(new, value) for value in witnesses)


def test_a_witness_of_an_output_is_possible_now_and_was_forbidden() -> None:
    old, new = result(a=STRING, required=("a",)), result(a=STRING)

    [found] = changed({"outputSchema": old}, {"outputSchema": new}).findings

    assert found.witness is not None
    assert found.witness.instance == {}


def test_each_change_of_a_large_schema_has_a_witness_of_its_own() -> None:
    many: Json = {f"p{number}": {**NUMBER, "minimum": 0} for number in range(50)}
    fewer: Json = {**many, "p7": {**NUMBER, "minimum": 1}, "p31": STRING}

    report = changed({"inputSchema": arguments(**many)}, {"inputSchema": arguments(**fewer)})

    witnesses = [found.witness.instance for found in report.findings if found.witness]
    assert [list(instance) for instance in witnesses] == [["p31"], ["p7"]]


# Reports


def test_a_report_reads_well() -> None:
    report = changed(inputs(a=STRING), inputs(a={**STRING, "minLength": 1}))

    assert render(report) == (
        "Contract 2.0.0: 1 change, 1 breaking; needs a major bump, declares none.\n"
        "\n"
        "search\n"
        "  major  INPUT_NARROWED  /inputSchema/properties/a\n"
        "         `minLength` is new: 1.\n"
        '         Accepted before, refused now: {"a": ""}\n'
        "\n"
        "Missing:\n"
        "  - INPUT_NARROWED of search is a major change: the contract needs version 3.0.0,"
        " not 2.0.0.\n"
        "  - search: its schemaVersion has to rise above 1, because of INPUT_NARROWED.\n"
    )


def test_a_report_as_json_has_every_fact() -> None:
    report = changed(inputs(a=STRING), inputs(a={**STRING, "minLength": 1}))

    body = json.loads(json.dumps(report.as_json()))

    assert (body["ok"], body["required"], body["declared"]) == (False, "major", "none")
    assert body["findings"] == [
        {
            "rule": "INPUT_NARROWED",
            "severity": "error",
            "level": "major",
            "tool": "search",
            "pointer": "/inputSchema/properties/a",
            "message": "`minLength` is new: 1.",
            "proof": "proved",
            "witness": {"a": ""},
        }
    ]


def test_a_report_as_sarif_names_its_rules() -> None:
    log = sarif(report_on("DESCRIPTION_CHANGED"), "contracts/tools.json")

    [run] = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["DESCRIPTION_CHANGED"]
    assert [found["level"] for found in run["results"]] == ["warning"]


@pytest.mark.parametrize("write", [render, markdown])
def test_the_words_of_another_server_cannot_steer_a_terminal_or_a_page(write: Any) -> None:
    sly = "a\x1b[2J\u202e|<img>`"
    report = compare(contract(tools={}), contract(tools={sly: tool()}))

    written = write(report)

    assert "\x1b" not in written
    assert "\u202e" not in written


def test_an_ignored_rule_is_neither_shown_nor_weighed() -> None:
    report = compare(contract(), contract(tools={}), ignore=["TOOL_REMOVED"])

    assert report.findings == ()
    assert report.ok


@pytest.mark.parametrize(
    ("snapshot", "why"),
    [
        ([], 'no "tools"'),
        ({"snapshot": 1}, 'no "tools"'),
        ({"snapshot": 2, "tools": {}}, "format 2"),
        ({"snapshot": 1, "tools": {"a": 1}}, "/tools/a is not an object"),
        ({"snapshot": 1, "tools": {"a": {"inputSchema": 1}}}, "/tools/a/inputSchema"),
        ({"snapshot": 1, "tools": {"a": {"aliases": ["b"]}}}, "/tools/a/aliases"),
    ],
)
def test_what_is_no_snapshot_is_refused_with_a_reason(snapshot: Any, why: str) -> None:
    with pytest.raises(SnapshotError, match=why):
        compare(snapshot, contract())


def test_a_bottomless_schema_is_refused() -> None:
    deep: Json = {}
    for _ in range(200):
        deep = {"not": deep}

    with pytest.raises(SnapshotError, match="levels deep"):
        compare(contract(), contract(tools={"search": tool(inputSchema=deep)}))


# Random schemas over a small world, so that random values often fit them.

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 4), st.sampled_from(["", "a", "ab", "abc", "b"])
)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


REFERENCES = st.sampled_from(["#/$defs/one", "#/$defs/two", "#"]).map(lambda ref: {"$ref": ref})
"""Only ever below a property or an item: a schema that is nothing but itself has no meaning."""


def keywords(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


def schemas(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    lists = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        st.booleans(),
        REFERENCES.map(lambda ref: {"properties": {"a": ref}}),
        REFERENCES.map(lambda ref: {"items": ref}),
        keywords(
            type=st.sampled_from(["integer", "string", "object", "array", "number", "null"]),
            enum=st.lists(SCALARS, min_size=1, max_size=3),
            minimum=st.integers(-1, 3),
            maximum=st.integers(0, 4),
            minLength=st.integers(0, 2),
            maxLength=st.integers(0, 3),
            pattern=st.sampled_from(["^a", "b$", "^a?b*$"]),
        ),
        keywords(
            type=st.just("object"),
            properties=st.dictionaries(NAMES, inner, max_size=3),
            required=st.lists(NAMES, unique=True, max_size=2),
            additionalProperties=inner,
            minProperties=st.integers(0, 2),
            patternProperties=st.dictionaries(st.sampled_from(["a", "^b"]), inner, max_size=1),
            dependentRequired=st.just({"a": ["b"]}),
            unevaluatedProperties=inner,
            propertyNames=inner,
        ),
        keywords(
            items=inner,
            prefixItems=lists,
            minItems=st.integers(0, 2),
            maxItems=st.integers(0, 3),
            uniqueItems=st.booleans(),
            contains=inner,
        ),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
        st.sampled_from(["anyOf", "allOf", "oneOf"]).flatmap(
            lambda keyword: lists.map(lambda parts: {keyword: parts})
        ),
        inner.map(lambda part: {"not": part}),
    )


SCHEMAS: st.SearchStrategy[Json] = st.recursive(
    keywords(type=st.sampled_from(["integer", "string", "object"])), schemas, max_leaves=6
)
DOCUMENTS = st.builds(
    lambda top, one, two: {**top, "$defs": {"one": one, "two": two}},
    SCHEMAS.filter(lambda s: isinstance(s, dict)),
    SCHEMAS,
    SCHEMAS,
)


def spots(schema: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The way to every schema inside a schema."""
    found = [path]
    if isinstance(schema, dict):
        for keyword in ("properties", "patternProperties", "$defs"):
            for name, part in schema.get(keyword, {}).items():
                found += spots(part, (*path, keyword, name))
        for keyword in ("anyOf", "allOf", "oneOf", "prefixItems"):
            for place, part in enumerate(schema.get(keyword, [])):
                found += spots(part, (*path, keyword, place))
        for keyword in ("items", "additionalProperties", "not", "if", "then", "else", "contains"):
            if keyword in schema:
                found += spots(schema[keyword], (*path, keyword))
    return found


def put(schema: Json, path: tuple[str | int, ...], part: Json) -> Json:
    if not path:
        return part
    copy: Any = dict(schema) if isinstance(schema, dict) else list(schema)
    copy[path[0]] = put(copy[path[0]], path[1:], part)
    return copy


def at(schema: Json, path: tuple[str | int, ...]) -> Json:
    for part in path:
        schema = schema[part]
    return schema


@st.composite
def edits(draw: st.DrawFn) -> tuple[Json, Json]:
    """A schema and what an edit at one place in it made of it."""
    old = draw(DOCUMENTS)
    path = draw(st.sampled_from(spots(old)))
    before = at(old, path)
    after = draw(SCHEMAS)
    if isinstance(before, dict):
        keyword = draw(st.sampled_from([None, *(before if path else before.keys() - {"$defs"})]))
        if keyword is not None:
            after = {name: value for name, value in before.items() if name != keyword}
        elif isinstance(after, dict):
            after = {**before, **after}
    return old, put(old, path, after) if path or isinstance(after, dict) else old


def uses_new_names(value: Json, old: Json, added: set[str]) -> bool:
    """Whether a value has an added property where the old schema knows of none."""
    known: dict[str, set[str]] = {}
    for unit in jsonschema_rs.evaluate(old, value, offline=True).list()["details"]:
        if unit.get("schemaLocation", "").endswith("roperties"):
            listed = unit.get("annotations") or unit.get("droppedAnnotations") or []
            found = {str(name) for name in listed} if isinstance(listed, list) else set()
            known.setdefault(unit["instanceLocation"], set()).update(found)

    def used(part: Json, at: str) -> bool:
        if isinstance(part, list):
            return any(used(item, f"{at}/{place}") for place, item in enumerate(part))
        if not isinstance(part, dict):
            return False
        if part.keys() & added - known.get(at, set()):
            return True
        return any(used(held, f"{at}/{name}") for name, held in part.items())

    return used(value, "")


def usable(schema: Json) -> bool:
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return False
    return True


SIDES = st.sampled_from([Side.INPUT, Side.OUTPUT])
SEARCHING = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SEARCHING
@given(edits(), SIDES, st.lists(VALUES, min_size=5, max_size=15))
def test_no_value_ever_contradicts_a_safe_verdict(
    edit: tuple[Json, Json], side: Side, values: list[Json]
) -> None:
    old, new = edit
    assume(usable(old) and usable(new))
    found = judge(old, new, side)
    safe = all(one.rule.level is not Level.MAJOR for one in found)
    assume(safe or Walk(old, new, side).run().sound)
    small, large = map(opinion, side.ordered(old, new))
    added = {
        one.pointer.rpartition("/")[2] for one in found if one.rule.id.endswith("_ADDED")
    }  # optional additions are forgiven, so that only values without them count

    for value in values:
        if not uses_new_names(value, old, added):
            assert large(value) or not small(value)


@SEARCHING
@given(edits(), SIDES)
def test_every_witness_shows_what_it_claims(edit: tuple[Json, Json], side: Side) -> None:
    old, new = edit
    assume(usable(old) and usable(new))
    small, large = side.ordered(old, new)

    for found in judge(old, new, side):
        if found.witness is not None:
            assert accepts(small, found.witness.instance)
            assert not accepts(large, found.witness.instance)


@SEARCHING
@given(edits(), SIDES)
def test_there_are_findings_exactly_when_there_is_a_difference(
    edit: tuple[Json, Json], side: Side
) -> None:
    old, new = edit
    differ = json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True)

    assert bool(judge(old, new, side)) is differ


@given(DOCUMENTS)
def test_nothing_changed_is_nothing_found(schema: Json) -> None:
    one = contract(tools={"search": tool(inputSchema=schema, outputSchema=schema)})

    assert compare(one, json.loads(json.dumps(one))).findings == ()


@SEARCHING
@given(edits(), st.randoms(use_true_random=False))
def test_the_order_in_which_keys_are_written_never_matters(
    edit: tuple[Json, Json], chance: random.Random
) -> None:
    old, new = (contract(tools={"search": tool(inputSchema=schema)}) for schema in edit)

    straight = compare(old, new)

    assert compare(shuffled(old, chance), shuffled(new, chance)).as_json() == straight.as_json()
    assert list(straight.findings) == sorted(straight.findings, key=lambda found: found.order)


def test_a_witness_does_not_depend_on_the_order_of_keys_either() -> None:
    names = ["c", "a", "b"]
    some: Json
    others: Json
    some, others = (dict.fromkeys(order, STRING) for order in (names, sorted(names)))

    reports = [
        changed({"inputSchema": arguments(**part)}, {"inputSchema": {**arguments(**part), **ONE}})
        for part in (some, others)
    ]

    assert reports[0].as_json() == reports[1].as_json()


ONE = {"maxProperties": 1}


def shuffled(value: Json, chance: random.Random) -> Json:
    if isinstance(value, dict):
        names = list(value)
        chance.shuffle(names)
        return {name: shuffled(value[name], chance) for name in names}
    return [shuffled(part, chance) for part in value] if isinstance(value, list) else value
