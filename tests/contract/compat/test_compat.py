"""Tests of contract comparison: every rule, both policies, and no refuted safe verdict."""

import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cleats.contract.compat import (
    RULES,
    BumpLevel,
    ContractPolicy,
    ContractReport,
    Proof,
    SnapshotError,
    compare_snapshots,
    render_markdown,
    render_sarif,
    render_text,
)
from cleats.contract.compat.findings import ContractSide, Witness
from cleats.contract.compat.schema_diff import compare_schemas
from cleats.contract.compat.schema_walk import SchemaWalk
from conformance.contract.trial import uses_new_names
from tests.support.requirements import requirement

Json = Any

STRING_SCHEMA = {"type": "string"}
INTEGER_SCHEMA = {"type": "integer"}


def build_input_schema(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def build_output_schema(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def build_tool(**parts: Json) -> Json:
    return {
        "description": "Find something.",
        "schemaVersion": 1,
        "inputSchema": build_input_schema(query=STRING_SCHEMA, required=("query",)),
        "outputSchema": build_output_schema(hits=STRING_SCHEMA, required=("hits",)),
        "annotations": {"readOnlyHint": True},
        "errors": ["NO_INDEX"],
        **parts,
    }


def build_contract(version: str | None = "2.0.0", tools: Json = None, **parts: Json) -> Json:
    return {
        "snapshot": 1,
        "schemaVersion": version,
        "semantics": {"timeout": "The work is stopped."},
        "errors": {"NO_INDEX": build_error(409), "INTERNAL": build_error(500)},
        "tools": {"search": build_tool()} if tools is None else tools,
        **parts,
    }


def build_error(http: int, **parts: Json) -> Json:
    return {
        "http": http,
        "rpc": -32000,
        "retryable": False,
        "meaning": "It failed.",
        "remedy": "Try again.",
        **parts,
    }


def compare_tools(before: Json, after: Json) -> ContractReport:
    """Return the report on a tool whose parts changed."""
    old, new = (build_contract(tools={"search": build_tool(**parts)}) for parts in (before, after))
    return compare_snapshots(old, new)


def list_rule_ids(report: ContractReport) -> list[str]:
    return [finding.rule.id for finding in report.findings]


# Every rule has a before and an after

ENVELOPE_SCHEMA: Json = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "note": STRING_SCHEMA},
    "required": ["ok"],
    "additionalProperties": False,
}
FILES_TOOL = build_tool(inputSchema=build_input_schema(path=STRING_SCHEMA, line=INTEGER_SCHEMA))
NODE_SCHEMA = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}


def build_envelope(**parts: Json) -> Json:
    return {"envelope": {**ENVELOPE_SCHEMA, **parts}}


def build_inputs(**properties: Json) -> Json:
    return {"inputSchema": build_input_schema(**properties)}


def build_outputs(**properties: Json) -> Json:
    return {"outputSchema": build_output_schema(**properties)}


def build_rule_report(rule: str, version: str = "2.0.0", integer: int = 1) -> ContractReport:
    """Return the report on a rule's before and after, which states these versions."""
    before, after = json.loads(RULES[rule].before), json.loads(RULES[rule].after)
    if RULES[rule].scope == "tool":
        after = {**after, "schemaVersion": integer}
        old, new = ({"tools": {"search": _drop_none(build_tool(**p))}} for p in (before, after))
    else:
        tools = after.get("tools", {"search": build_tool()})
        versioned_tools = {name: {**entry, "schemaVersion": integer} for name, entry in tools.items()}
        old, new = before, {**after, "tools": versioned_tools}
    return compare_snapshots({**build_contract(), **old}, {**build_contract(version), **new})


def _drop_none(entry: Json) -> Json:
    return {key: part for key, part in entry.items() if part is not None or key == "timeoutMs"}


EVERY_RULE = pytest.mark.parametrize("rule", RULES)


@EVERY_RULE
def test_a_change_is_found_by_its_rule_and_by_no_other(rule: str) -> None:
    words = ["DESCRIPTION_CHANGED"] if RULES[rule].security and RULES[rule].level is BumpLevel.PATCH else []

    assert list_rule_ids(build_rule_report(rule)) == [*words, rule]


@EVERY_RULE
def test_a_change_without_its_bumps_is_refused(rule: str) -> None:
    report = build_rule_report(rule)

    assert report.required is RULES[rule].level
    assert report.ok is (report.required is BumpLevel.NONE)
    owes_integer = any("its schemaVersion has to rise" in sentence for sentence in report.missing)
    assert owes_integer is RULES[rule].integer


@EVERY_RULE
def test_a_change_with_its_bumps_is_accepted(rule: str) -> None:
    bumped = {"none": "2.0.0", "patch": "2.0.1", "minor": "2.1.0", "major": "3.0.0"}
    level = RULES[rule].level

    report = build_rule_report(rule, bumped[level], integer=2 if RULES[rule].integer else 1)

    assert report.missing == ()
    assert report.declared is level


@EVERY_RULE
def test_every_bump_short_of_the_right_one_is_refused(rule: str) -> None:
    too_small = {"minor": ["2.0.0", "2.0.1"], "major": ["2.0.9", "2.9.0"], "patch": ["2.0.0"]}

    for version in too_small.get(RULES[rule].level, []):
        assert not build_rule_report(rule, version, integer=2).ok


# Spec a §2.2: when the tool's integer has to rise


def is_integer_owed(report: ContractReport, name: str = "search") -> bool:
    return any(s.startswith(f"{name}: its schemaVersion has to rise") for s in report.missing)


@requirement("a:bump:required-argument")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (build_inputs(a=STRING_SCHEMA), build_inputs(a=STRING_SCHEMA, required=("a",))),
        (build_inputs(), build_inputs(a=STRING_SCHEMA, required=("a",))),
        (
            build_inputs(a=build_input_schema(b=STRING_SCHEMA)),
            build_inputs(a=build_input_schema(b=STRING_SCHEMA, required=("b",))),
        ),
    ],
    ids=["of an optional one", "of a new one", "inside another"],
)
def test_an_added_required_argument_needs_a_higher_integer(before: Json, after: Json) -> None:
    assert is_integer_owed(compare_tools(before, after))


@requirement("a:bump:meaning")
def test_a_raised_meaning_needs_a_higher_integer() -> None:
    stated = {**INTEGER_SCHEMA, "x-meaning": 1}

    assert is_integer_owed(compare_tools(build_inputs(a=stated), build_inputs(a={**INTEGER_SCHEMA, "x-meaning": 2})))
    assert not is_integer_owed(compare_tools(build_inputs(a=INTEGER_SCHEMA), build_inputs(a=stated)))


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
    assert is_integer_owed(compare_tools(build_inputs(a=old), build_inputs(a=new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (build_inputs(a=INTEGER_SCHEMA, required=("a",)), build_inputs(a={**INTEGER_SCHEMA, "default": 10})),
        (
            build_inputs(a=STRING_SCHEMA, required=("a",)),
            build_inputs(a={"anyOf": [STRING_SCHEMA, {"type": "null"}], "default": None}),
        ),
        (build_inputs(a={"type": "number", "default": 1}), build_inputs(a={"type": "number", "default": 1.0})),
        (build_inputs(a={"default": None}), build_inputs(a={})),
        (build_inputs(a={"default": 1}, required=("a",)), build_inputs(a={"default": 2}, required=("a",))),
    ],
    ids=["default", "null", "same number", "null is gone", "required in both"],
)
def test_a_default_that_no_caller_relied_on_breaks_nobody(old: Json, new: Json) -> None:
    assert compare_tools(old, new).required is not BumpLevel.MAJOR


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (build_inputs(a={"default": 1}, required=("a",)), build_inputs(a={})),
        (build_inputs(a={"default": None}), build_inputs(a={})),
    ],
    ids=["the argument was required", "the default was null"],
)
def test_a_default_that_goes_away_is_not_called_stated(old: Json, new: Json) -> None:
    assert "INPUT_DEFAULT_STATED" not in list_rule_ids(compare_tools(old, new))


@pytest.mark.parametrize("schema", [STRING_SCHEMA, True], ids=["texts", "anything"])
def test_names_that_are_refused_now_are_no_change_of_a_type(schema: Json) -> None:
    headers = [{"type": "object", "additionalProperties": part} for part in (schema, False)]

    report = compare_tools(*(build_inputs(headers=part) for part in headers))

    assert list_rule_ids(report) == ["INPUT_NARROWED"]


def test_annotations_are_described_by_what_differs() -> None:
    hints = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True}
    titled, renamed = ({"annotations": {**hints, "title": title}} for title in ("Start", "Run"))

    [finding] = compare_tools(titled, renamed).findings
    safer, stated = compare_tools({"annotations": {}}, titled).findings

    assert finding.message == '`title` was "Start" and is "Run".'
    assert safer.message == "Clients need not assume any more that it can destroy data."
    assert stated.message == '`title` is new: "Start".'


def test_a_rename_is_claimed_only_for_one_similar_name() -> None:
    old = build_inputs(ignoreSitemap=STRING_SCHEMA, userId=STRING_SCHEMA, maxDepth=INTEGER_SCHEMA)
    new = build_inputs(ignoreQueryParameters=STRING_SCHEMA, user_id=STRING_SCHEMA, delay=INTEGER_SCHEMA)
    ambiguous = build_inputs(path_from=STRING_SCHEMA, path_to=STRING_SCHEMA)

    messages = [finding.message for finding in compare_tools(old, new).findings if "RENAMED" in finding.rule.id]

    assert messages == ["`userId` is now called `user_id`."]
    assert "INPUT_PROPERTY_RENAMED" not in list_rule_ids(compare_tools(build_inputs(path=STRING_SCHEMA), ambiguous))


def test_a_value_that_becomes_one_of_several_shapes_is_one_change() -> None:
    shape = {"type": "object", "properties": {"type": STRING_SCHEMA, "text": STRING_SCHEMA}, "required": ["type"]}
    other = {"type": "object", "properties": {"type": STRING_SCHEMA, "blob": STRING_SCHEMA}, "required": ["type"]}

    [finding] = compare_tools(
        build_outputs(a=shape), build_outputs(a={"anyOf": [shape, other, {"type": "null"}]})
    ).findings

    assert finding.rule.level is BumpLevel.MAJOR
    assert finding.witness is not None


def test_an_argument_that_accepts_everything_now_has_lost_no_names() -> None:
    node = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}}
    definitions = {"$defs": {"node": node}}
    for before in (node, {"$ref": "#/$defs/node"}):
        old, new = ({"type": "object", "properties": {"a": part}, **definitions} for part in (before, {"title": "A"}))

        findings = compare_schemas(old, new, ContractSide.INPUT)

        assert {finding.rule.id for finding in findings} <= {"INPUT_WIDENED", "INPUT_DOCS_CHANGED"}


def test_another_type_is_one_change() -> None:
    old = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
    new = {"type": "object", "properties": {"a": {"type": "object", "required": ["b"], "properties": {"b": {}}}}}

    [finding] = compare_schemas(old, new, ContractSide.INPUT)

    assert finding.rule.id == "INPUT_TYPE_CHANGED"
    assert finding.witness == Witness({"a": []})


def test_a_finding_says_in_words_what_is_true() -> None:
    old = build_contract(
        tools={"search": build_tool(inputSchema={"type": "object"})},
        capabilities={"tools": {}, "experimental": {}},
        server={"name": "a", "version": "1"},
    )
    new = build_contract(
        tools={
            "search": build_tool(inputSchema={"type": "object", "additionalProperties": False})
            | {"title": "Search", "annotations": {"readOnlyHint": True, "openWorldHint": False}}
        },
        capabilities={"tools": {}},
        server={"name": "a", "version": "2"},
    )

    messages = {finding.rule.id: finding.message for finding in compare_snapshots(old, new).findings}

    assert messages == {
        "INPUT_NARROWED": "Names that are not listed are refused now.",
        "SERVER_CHANGED": '`version` was "1" and is "2".',
        "TITLE_CHANGED": 'Is new: "Search".',
        "ANNOTATION_SAFER": "Clients need not assume any more that it reaches outside systems.",
    }


def test_a_name_that_property_names_announce_is_known() -> None:
    old = {"propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {}}
    new = {"properties": {"a": INTEGER_SCHEMA, "b": {}}, "additionalProperties": False}

    assert compare_tools({"inputSchema": old}, {"inputSchema": new}).required is BumpLevel.MAJOR


def test_breaking_changes_come_first() -> None:
    old = build_contract(tools={"a": build_tool(title="A"), "b": build_tool()})
    new = build_contract(tools={"a": build_tool(title="B"), "b": build_tool(**build_inputs())})

    levels = [finding.rule.level for finding in compare_snapshots(old, new).findings]

    assert levels[0] is BumpLevel.MAJOR
    assert levels == sorted(levels, key=lambda level: level is not BumpLevel.MAJOR)


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
    assert is_integer_owed(build_rule_report(rule))


@requirement("a:bump:error-codes")
@pytest.mark.parametrize(
    "rule",
    ["TOOL_ERROR_ADDED", "TOOL_ERROR_REMOVED", "ERROR_ADDED", "ERROR_REMOVED", "ERROR_RENAMED"],
)
def test_an_added_removed_or_renamed_error_code_needs_a_higher_integer(rule: str) -> None:
    assert is_integer_owed(build_rule_report(rule))


def test_an_error_code_touches_the_tools_that_list_it_and_no_others() -> None:
    tools = {"search": build_tool(errors=["NO_INDEX"]), "status": build_tool(errors=[])}
    old = build_contract(tools=tools)
    new = build_contract(tools=tools, errors={**old["errors"], "NO_INDEX": build_error(404)})

    report = compare_snapshots(old, new)

    assert is_integer_owed(report, "search")
    assert not is_integer_owed(report, "status")


def test_an_error_code_that_no_tool_lists_touches_them_all() -> None:
    tools = {"search": build_tool(), "status": build_tool(errors=[])}
    old = build_contract(tools=tools)
    new = build_contract(tools=tools, errors={**old["errors"], "INTERNAL": build_error(503)})

    report = compare_snapshots(old, new)

    assert is_integer_owed(report, "search")
    assert is_integer_owed(report, "status")


def test_an_error_code_for_a_new_tool_touches_no_old_one() -> None:
    old = build_contract()
    new = build_contract(
        tools={**old["tools"], "build": build_tool(errors=["BUSY"], inputSchema=build_inputs())},
        errors={**old["errors"], "BUSY": build_error(503)},
    )

    assert not is_integer_owed(compare_snapshots(old, new))


@requirement("a:bump:cancel-timeout")
@pytest.mark.parametrize("rule", ["SEMANTICS_CHANGED", "TIMEOUT_LOWERED", "TIMEOUT_RAISED"])
def test_changed_cancellation_or_timeout_needs_a_higher_integer(rule: str) -> None:
    assert is_integer_owed(build_rule_report(rule))


@requirement("a:bump:cancel-timeout")
@pytest.mark.parametrize("name", ["cancellation", "timeout"])
def test_changed_semantics_need_a_higher_integer_of_every_tool(name: str) -> None:
    tools = {"search": build_tool(), "status": build_tool()}

    report = compare_snapshots(
        build_contract(tools=tools, semantics={name: "one answer"}),
        build_contract(tools=tools, semantics={name: "no answer"}),
    )

    assert is_integer_owed(report, "search")
    assert is_integer_owed(report, "status")


@requirement("a:no-bump:docs")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"description": "Find."}, {"description": "Find things."}),
        (build_inputs(a=STRING_SCHEMA), build_inputs(a={**STRING_SCHEMA, "description": "A word."})),
        (build_outputs(a=STRING_SCHEMA), build_outputs(a={**STRING_SCHEMA, "description": "A word."})),
        ({"examples": []}, {"examples": [{"query": "x"}]}),
    ],
    ids=["description", "argument", "result", "examples"],
)
def test_a_clarified_text_needs_no_higher_integer(before: Json, after: Json) -> None:
    report = compare_tools(before, after)

    assert report.findings
    assert not is_integer_owed(report)


@requirement("a:no-bump:optional-argument")
@pytest.mark.parametrize("argument", [STRING_SCHEMA, {**INTEGER_SCHEMA, "default": 5}], ids=["plain", "with a default"])
def test_an_optional_argument_needs_no_higher_integer(argument: Json) -> None:
    assert not is_integer_owed(compare_tools(build_inputs(a=STRING_SCHEMA), build_inputs(a=STRING_SCHEMA, b=argument)))


@requirement("a:no-bump:optional-result")
@pytest.mark.parametrize("closed", [True, False])
def test_an_optional_result_field_needs_no_higher_integer(*, closed: bool) -> None:
    before, after = (
        {**build_outputs(a=STRING_SCHEMA)["outputSchema"]},
        build_outputs(a=STRING_SCHEMA, b=STRING_SCHEMA),
    )
    if closed:
        before["additionalProperties"] = False
        after["outputSchema"]["additionalProperties"] = False

    report = compare_tools({"outputSchema": before}, after)

    assert list_rule_ids(report) == ["OUTPUT_PROPERTY_ADDED"]
    assert not is_integer_owed(report)


@requirement("a:names:rename-is-breaking")
@pytest.mark.parametrize("rule", ["TOOL_RENAMED", "TOOL_RENAMED_WITHOUT_ALIAS"])
def test_a_rename_is_breaking_and_needs_a_higher_integer(rule: str) -> None:
    report = build_rule_report(rule)

    assert report.required is BumpLevel.MAJOR
    assert is_integer_owed(report, "find")


def test_an_integer_never_falls_whatever_else_happened() -> None:
    report = compare_tools({"schemaVersion": 3}, {"schemaVersion": 2})

    assert report.missing == ("search: its schemaVersion fell from 3 to 2.",)


def test_an_integer_may_rise_for_no_reason_but_not_go_away() -> None:
    assert compare_tools({"schemaVersion": 3}, {"schemaVersion": 7}).ok
    assert not compare_tools({"schemaVersion": 3}, {"schemaVersion": None}).ok


# Spec b §3.3: how far the contract's version has to rise


@requirement("b:semver:major-names", "b:tools:removed-or-renamed-is-major")
@pytest.mark.parametrize("rule", ["TOOL_REMOVED", "TOOL_RENAMED", "TOOL_RENAMED_WITHOUT_ALIAS", "ALIAS_REMOVED"])
def test_a_lost_name_is_major(rule: str) -> None:
    assert build_rule_report(rule).required is BumpLevel.MAJOR


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
    assert build_rule_report(rule).required is BumpLevel.MAJOR


@requirement("b:semver:major-input")
def test_an_argument_that_is_removed_from_an_open_schema_is_major_though_nothing_is_refused() -> None:
    before, after = ({"type": "object", "properties": p} for p in ({"a": STRING_SCHEMA}, {}))

    report = compare_tools({"inputSchema": before}, {"inputSchema": after})

    assert list_rule_ids(report) == ["INPUT_PROPERTY_REMOVED"]
    assert report.required is BumpLevel.MAJOR


@requirement("b:semver:major-envelope")
@pytest.mark.parametrize(
    "after",
    [
        {"required": []},
        {"properties": {"ok": {"type": "boolean"}}},
        {"properties": {"ok": {"type": "string"}, "note": STRING_SCHEMA}},
        {"properties": {"fine": {"type": "boolean"}, "note": STRING_SCHEMA}},
        {"properties": {**ENVELOPE_SCHEMA["properties"], "note": {**STRING_SCHEMA, "x-meaning": 2}}},
    ],
    ids=["sometimes absent", "removed", "retyped", "renamed", "meaning"],
)
def test_a_changed_envelope_is_major(after: Json) -> None:
    report = compare_snapshots(build_contract(**build_envelope()), build_contract(**build_envelope(**after)))

    assert report.required is BumpLevel.MAJOR
    assert is_integer_owed(report)


@requirement("b:semver:minor-additions")
@pytest.mark.parametrize(
    "rule",
    ["TOOL_ADDED", "INPUT_PROPERTY_ADDED", "OUTPUT_PROPERTY_ADDED", "ENVELOPE_FIELD_ADDED"],
)
def test_an_optional_addition_is_minor(rule: str) -> None:
    assert build_rule_report(rule).required is BumpLevel.MINOR


@requirement("b:semver:minor-additions")
def test_an_optional_argument_is_minor_though_an_open_schema_let_anything_pass_under_its_name() -> None:
    before, after = ({"type": "object", "properties": p} for p in ({}, {"a": STRING_SCHEMA}))

    report = compare_tools({"inputSchema": before}, {"inputSchema": after})

    assert list_rule_ids(report) == ["INPUT_PROPERTY_ADDED"]


def test_a_new_argument_that_takes_a_name_from_a_map_is_major() -> None:
    before = {"type": "object", "additionalProperties": INTEGER_SCHEMA}
    after = {**before, "properties": {"a": STRING_SCHEMA}}

    report = compare_tools({"inputSchema": before}, {"inputSchema": after})

    assert report.required is BumpLevel.MAJOR


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"allOf": [{"properties": {"a": STRING_SCHEMA}}]}, {"properties": {"a": INTEGER_SCHEMA}}),
        ({"required": ["a"]}, {"properties": {"a": INTEGER_SCHEMA}}),
        ({"patternProperties": {"^a": STRING_SCHEMA}}, {"properties": {"a": INTEGER_SCHEMA}}),
        (
            {
                "properties": {"o": {"properties": {"a": STRING_SCHEMA}}},
                "allOf": [{"properties": {"o": {}}}],
            },
            {"allOf": [{"properties": {"o": {"properties": {"a": INTEGER_SCHEMA}}}}]},
        ),
        (
            {"$ref": "#/$defs/o", "required": ["a"], "$defs": {"o": {}}},
            {"$defs": {"o": {"properties": {"a": INTEGER_SCHEMA}}}},
        ),
    ],
    ids=["beside", "required", "by a pattern", "inside", "by a reference"],
)
def test_a_name_that_the_old_schema_spoke_of_is_no_addition(before: Json, after: Json) -> None:
    report = compare_tools({"inputSchema": before}, {"inputSchema": {**before, **after}})

    assert report.required is BumpLevel.MAJOR


@requirement("b:semver:patch-editorial")
@pytest.mark.parametrize(
    "rule", ["DESCRIPTION_CHANGED", "INPUT_DOCS_CHANGED", "EXAMPLES_CHANGED", "ERROR_DOCS_CHANGED"]
)
def test_an_editorial_change_is_patch(rule: str) -> None:
    assert build_rule_report(rule).required is BumpLevel.PATCH


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
    assert compare_snapshots(build_contract(old), build_contract(new)).declared == declared


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("2.1.0", "2.0.0", "fell from 2.1.0 to 2.0.0"),
        ("2.0.0", None, "is gone"),
        ("2.0.0", "two", "not a SemVer version"),
    ],
)
def test_a_version_that_falls_goes_or_is_none_is_refused(old: str, new: str | None, why: str) -> None:
    [sentence] = compare_snapshots(build_contract(old), build_contract(new)).missing

    assert why in sentence


def test_a_server_without_a_version_may_add_but_not_break() -> None:
    broken = build_contract(None, tools={})

    assert compare_snapshots(broken, build_contract(None)).ok
    assert not compare_snapshots(build_contract(None), broken).ok


# Renames


def test_a_tool_that_moved_behind_an_alias_is_compared_under_its_new_name() -> None:
    after = build_tool(
        aliases=[{"name": "search", "deprecated": "3.0.0"}],
        inputSchema=build_input_schema(query=INTEGER_SCHEMA, required=("query",)),
    )

    report = compare_snapshots(build_contract(), build_contract(tools={"find": after}))

    assert list_rule_ids(report) == ["TOOL_RENAMED", "INPUT_TYPE_CHANGED"]
    assert {finding.tool for finding in report.findings} == {"find"}


def test_tools_without_arguments_are_not_taken_for_one_another() -> None:
    empty = {"inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
    old = build_contract(tools={"stop": build_tool(description="Stop.", **empty)})
    new = build_contract(tools={"start": build_tool(description="Start.", **empty)})

    assert list_rule_ids(compare_snapshots(old, new)) == ["TOOL_REMOVED", "TOOL_ADDED"]


def test_a_name_and_its_alias_can_change_places() -> None:
    old = build_contract(tools={"search": build_tool(aliases=[{"name": "find", "deprecated": "1.0.0"}])})
    new = build_contract(tools={"find": build_tool(aliases=[{"name": "search", "deprecated": "3.0.0"}])})

    assert list_rule_ids(compare_snapshots(old, new)) == ["TOOL_RENAMED"]


# What proof adds to reading


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"exclusiveMinimum": 0, "type": "integer"}, {"minimum": 1, "type": "integer"}),
        ({"anyOf": [STRING_SCHEMA, INTEGER_SCHEMA]}, {"type": ["integer", "string"]}),
        ({"allOf": [{"minimum": 1}, {"minimum": 3}]}, {"minimum": 3}),
        ({"$ref": "#/properties/b"}, {"type": "string"}),
        ({"$ref": "#/properties/b"}, {"allOf": [{"$ref": "#/properties/b"}]}),
        (build_output_schema(c=STRING_SCHEMA), {"allOf": [build_output_schema(c=STRING_SCHEMA)]}),
    ],
)
def test_the_same_in_other_words_is_only_rewritten(old: Json, new: Json) -> None:
    report = compare_tools(build_inputs(a=old, b=STRING_SCHEMA), build_inputs(a=new, b=STRING_SCHEMA))

    assert set(list_rule_ids(report)) == {"INPUT_REWRITTEN"}


def test_what_looks_narrower_in_one_place_but_is_not_as_a_whole_is_safe() -> None:
    old = {"type": "object", "properties": {"a": INTEGER_SCHEMA}, "minProperties": 1}
    new = {"type": "object", "properties": {"a": INTEGER_SCHEMA}, "anyOf": [{"minProperties": 0}]}

    report = compare_tools({"inputSchema": old}, {"inputSchema": new})

    assert report.required is BumpLevel.MINOR


def test_a_recursive_schema_that_takes_more_is_proved_part_by_part() -> None:
    kids = {"type": "array", "items": {"$ref": "#"}}
    old = {"type": "object", "properties": {"kids": {**kids, "maxItems": 2}}}
    new = {"type": "object", "properties": {"kids": kids}}

    [finding] = compare_tools({"inputSchema": old}, {"inputSchema": new}).findings

    assert (finding.rule.id, finding.proof) == ("INPUT_WIDENED", Proof.STRUCTURAL)


def test_what_nobody_can_decide_counts_as_breaking_and_says_so() -> None:
    old = build_inputs(a={"type": "string", "pattern": "^(?=.*x{40})(?=.*y{40}).*$"})
    new = build_inputs(a={"type": "string", "pattern": "^(?=.*y{40})(?=.*x{40}).*$"})

    [finding] = compare_tools(old, new).findings

    assert finding.rule.id == "CANNOT_PROVE_SAFE"
    assert finding.proof is Proof.UNPROVEN
    assert "Cannot be proved safe" in render_text(compare_tools(old, new))


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
    report = compare_tools(build_inputs(a=STRING_SCHEMA), build_inputs(a=odd))

    assert "CANNOT_PROVE_SAFE" in list_rule_ids(report) or "INPUT_TYPE_CHANGED" in list_rule_ids(report)
    assert report.required is BumpLevel.MAJOR


def test_a_schema_that_the_prover_would_not_survive_is_not_shown_to_it() -> None:
    itself = {"$ref": "#", "unevaluatedProperties": {}}
    old = {"oneOf": [{"oneOf": [{"properties": {"c": itself}}, {}]}]}

    report = compare_tools({"inputSchema": old}, {"inputSchema": {**old, "minProperties": 1}})

    assert report.required is BumpLevel.MAJOR


def test_a_schema_that_meets_itself_everywhere_is_compared_in_no_time() -> None:
    def build_family(minimum: int) -> Json:
        members = {f"child{number}": {"$ref": "#"} for number in range(8)}
        return {"type": "object", "properties": {**members, "age": {"minimum": minimum}}}

    [finding] = compare_tools({"inputSchema": build_family(0)}, {"inputSchema": build_family(1)}).findings

    assert finding.witness is not None
    assert finding.witness.instance == {"age": 0}


def test_a_format_is_taken_at_its_word_in_both_directions() -> None:
    plain, dated = {"type": "string"}, {"type": "string", "format": "date"}

    assert list_rule_ids(compare_tools(build_inputs(a=plain), build_inputs(a=dated))) == ["INPUT_NARROWED"]
    assert list_rule_ids(compare_tools(build_outputs(a=dated), build_outputs(a=plain))) == ["OUTPUT_WIDENED"]


def test_a_reserved_argument_counts_as_refused() -> None:
    reserved = {**STRING_SCHEMA, "x-reserved": True}

    assert list_rule_ids(compare_tools(build_inputs(a=STRING_SCHEMA), build_inputs(a=reserved))) == ["INPUT_NARROWED"]
    assert list_rule_ids(compare_tools(build_inputs(a=reserved), build_inputs(a=STRING_SCHEMA))) == ["INPUT_WIDENED"]
    assert list_rule_ids(compare_tools(build_inputs(a=reserved), build_inputs())) == ["INPUT_REWRITTEN"]


def test_another_draft_that_says_the_same_is_only_rewritten() -> None:
    old = {**build_input_schema(a=STRING_SCHEMA), "$schema": "http://json-schema.org/draft-07/schema#"}
    new = {**build_input_schema(a=STRING_SCHEMA), "$schema": "https://json-schema.org/draft/2020-12/schema"}

    assert list_rule_ids(compare_tools({"inputSchema": old}, {"inputSchema": new})) == ["INPUT_REWRITTEN"]


def test_another_draft_that_reads_the_same_words_differently_is_not_safe() -> None:
    # Draft 7 does not look at what stands beside a reference.
    words = {
        "definitions": {"any": {}},
        "properties": {"a": {"$ref": "#/definitions/any", "minimum": 5}},
    }
    old = {**words, "$schema": "http://json-schema.org/draft-07/schema#"}
    new = {**words, "$schema": "https://json-schema.org/draft/2020-12/schema"}

    report = compare_tools({"inputSchema": old}, {"inputSchema": new})

    assert report.required is BumpLevel.MAJOR


def test_an_envelope_change_is_told_once_and_not_for_every_tool() -> None:
    def wrap_result(wrapper: Json) -> Json:
        properties = {**wrapper["properties"], "result": build_output_schema(a=STRING_SCHEMA)}
        wrapped_schema = {**wrapper, "properties": properties}
        return build_tool(outputSchema=wrapped_schema, payload="envelope")

    old = {**ENVELOPE_SCHEMA, "properties": {**ENVELOPE_SCHEMA["properties"], "result": {"type": "object"}}}
    new = {**old, "required": ["ok", "note"]}

    report = compare_snapshots(
        build_contract(tools={"search": wrap_result(old)}, envelope=old),
        build_contract(tools={"search": wrap_result(new)}, envelope=new),
    )

    assert list_rule_ids(report) == ["ENVELOPE_FIELD_PROMISED"]


# Witnesses


def build_checker(schema: Json) -> Callable[[Json], bool]:
    """Return a check by another validator than the one that made the witness."""
    formats = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = jsonschema.Draft202012Validator(schema, format_checker=formats)
    return lambda value: bool(validator.is_valid(value))


def accepts_value(schema: Json, value: Json) -> bool:
    return build_checker(schema)(value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (build_input_schema(a=STRING_SCHEMA), build_input_schema(a=STRING_SCHEMA, required=("a",))),
        (build_input_schema(a=STRING_SCHEMA), build_input_schema()),
        (build_input_schema(a=STRING_SCHEMA), build_input_schema(b=STRING_SCHEMA)),
        (build_input_schema(a=STRING_SCHEMA), build_input_schema(a=INTEGER_SCHEMA)),
        (build_input_schema(a={"enum": ["x", "y"]}), build_input_schema(a={"enum": ["x"]})),
        (build_input_schema(a={"type": "integer", "maximum": 9}), build_input_schema(a={"maximum": 8})),
        (build_input_schema(a=STRING_SCHEMA), build_input_schema(a={**STRING_SCHEMA, "maxLength": 300})),
        (build_input_schema(a=STRING_SCHEMA), build_input_schema(a={**STRING_SCHEMA, "pattern": "^[a-z]+$"})),
        (build_input_schema(a=STRING_SCHEMA), build_input_schema(a={**STRING_SCHEMA, "format": "date"})),
        (build_input_schema(a={"items": STRING_SCHEMA}), build_input_schema(a={"items": STRING_SCHEMA, "maxItems": 2})),
        ({"type": "object"}, {"type": "object", "additionalProperties": False}),
        (NODE_SCHEMA, {**NODE_SCHEMA, "maxProperties": 0}),
    ],
)
def test_a_witness_was_accepted_before_and_is_refused_now(old: Json, new: Json) -> None:
    report = compare_tools({"inputSchema": old}, {"inputSchema": new})

    [finding] = report.filter_by_level(BumpLevel.MAJOR)
    assert finding.witness is not None
    assert accepts_value(old, finding.witness.instance)
    assert not accepts_value(new, finding.witness.instance)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"additionalProperties": {"not": {"type": "number"}}}, {"additionalProperties": {}}),
        ({"minProperties": 2, "dependentRequired": {"b": ["a"]}}, {"minProperties": 2}),
        ({"oneOf": [{"const": "ab"}, {"type": "null"}], "type": ["string", "null"]}, {"oneOf": [{}, {"type": "null"}]}),
        ({"prefixItems": [{"not": {"type": "number"}}]}, {"prefixItems": [{}]}),
    ],
    ids=["unlisted names", "too few properties", "an empty branch", "the first item"],
)
def test_a_witness_is_found_where_the_new_schema_says_little(old: Json, new: Json) -> None:
    [breaking, *_] = compare_schemas(old, new, ContractSide.OUTPUT)

    assert breaking.witness is not None
    assert accepts_value(new, breaking.witness.instance)
    assert not accepts_value(old, breaking.witness.instance)


def test_a_witness_holds_against_the_contract_as_it_was_and_not_as_it_is_forgiven() -> None:
    # Every object fits both branches, and so neither alone. That a caller has no `c` to send is
    # forgiven in the first branch, and then an object with a `c` would fit the second alone.
    anything = {"minItems": 1}
    closed = {"properties": {"c": {"const": 1}}, "additionalProperties": {"const": 0, "minimum": 1}}
    old = {"oneOf": [{"type": "object"}, anything]}
    new = {"oneOf": [{"type": "object", **closed}, anything]}

    findings = compare_tools({"inputSchema": old}, {"inputSchema": new}).findings

    witnesses = [one.witness.instance for one in findings if one.witness is not None]
    assert all(accepts_value(old, value) and not accepts_value(new, value) for value in witnesses)


def test_a_witness_of_an_output_is_possible_now_and_was_forbidden() -> None:
    old, new = build_output_schema(a=STRING_SCHEMA, required=("a",)), build_output_schema(a=STRING_SCHEMA)

    [finding] = compare_tools({"outputSchema": old}, {"outputSchema": new}).findings

    assert finding.witness is not None
    assert finding.witness.instance == {}


def test_each_change_of_a_large_schema_has_a_witness_of_its_own() -> None:
    many: Json = {f"p{number}": {**INTEGER_SCHEMA, "minimum": 0} for number in range(50)}
    fewer: Json = {**many, "p7": {**INTEGER_SCHEMA, "minimum": 1}, "p31": STRING_SCHEMA}

    report = compare_tools({"inputSchema": build_input_schema(**many)}, {"inputSchema": build_input_schema(**fewer)})

    witnesses = [finding.witness.instance for finding in report.findings if finding.witness]
    assert [list(instance) for instance in witnesses] == [["p31"], ["p7"]]


# Reports


def test_a_report_reads_well() -> None:
    report = compare_tools(build_inputs(a=STRING_SCHEMA), build_inputs(a={**STRING_SCHEMA, "minLength": 1}))

    assert render_text(report) == (
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
    report = compare_tools(build_inputs(a=STRING_SCHEMA), build_inputs(a={**STRING_SCHEMA, "minLength": 1}))

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
            "effect": "refused",
        }
    ]


def test_a_report_as_sarif_names_its_rules() -> None:
    log = render_sarif(build_rule_report("DESCRIPTION_CHANGED"), "contracts/tools.json")

    [run] = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["DESCRIPTION_CHANGED"]
    assert [result_entry["level"] for result_entry in run["results"]] == ["warning"]


@pytest.mark.parametrize("write", [render_text, render_markdown])
def test_the_words_of_another_server_cannot_steer_a_terminal_or_a_page(write: Any) -> None:
    sly = "a\x1b[2J\u202e|<img>`"
    report = compare_snapshots(build_contract(tools={}), build_contract(tools={sly: build_tool()}))

    rendered_report = write(report)

    assert "\x1b" not in rendered_report
    assert "\u202e" not in rendered_report


def test_an_ignored_rule_is_neither_shown_nor_weighed() -> None:
    report = compare_snapshots(
        build_contract(), build_contract(tools={}), policy=ContractPolicy(levels={"TOOL_REMOVED": BumpLevel.NONE})
    )

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
        compare_snapshots(snapshot, build_contract())


def test_a_bottomless_schema_is_refused() -> None:
    deep: Json = {}
    for _ in range(200):
        deep = {"not": deep}

    with pytest.raises(SnapshotError, match="levels deep"):
        compare_snapshots(build_contract(), build_contract(tools={"search": build_tool(inputSchema=deep)}))


# Random schemas over a small world, so that random values often fit them.

PROPERTY_NAMES = st.sampled_from(["a", "b", "c"])
SCALAR_VALUES = st.one_of(st.none(), st.booleans(), st.integers(-2, 4), st.sampled_from(["", "a", "ab", "abc", "b"]))
JSON_VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALAR_VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PROPERTY_NAMES, inner, max_size=3),
    max_leaves=8,
)


REFERENCE_SCHEMAS = st.sampled_from(["#/$defs/one", "#/$defs/two", "#"]).map(lambda ref: {"$ref": ref})
"""Used only below a property or an item: a schema that is only a reference to itself means
nothing."""


def build_keywords(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


def build_schemas(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    lists = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        st.booleans(),
        REFERENCE_SCHEMAS.map(lambda ref: {"properties": {"a": ref}}),
        REFERENCE_SCHEMAS.map(lambda ref: {"items": ref}),
        build_keywords(
            type=st.sampled_from(["integer", "string", "object", "array", "number", "null"]),
            enum=st.lists(SCALAR_VALUES, min_size=1, max_size=3),
            minimum=st.integers(-1, 3),
            maximum=st.integers(0, 4),
            minLength=st.integers(0, 2),
            maxLength=st.integers(0, 3),
            pattern=st.sampled_from(["^a", "b$", "^a?b*$"]),
        ),
        build_keywords(
            type=st.just("object"),
            properties=st.dictionaries(PROPERTY_NAMES, inner, max_size=3),
            required=st.lists(PROPERTY_NAMES, unique=True, max_size=2),
            additionalProperties=inner,
            minProperties=st.integers(0, 2),
            patternProperties=st.dictionaries(st.sampled_from(["a", "^b"]), inner, max_size=1),
            dependentRequired=st.just({"a": ["b"]}),
            unevaluatedProperties=inner,
            propertyNames=inner,
        ),
        build_keywords(
            items=inner,
            prefixItems=lists,
            minItems=st.integers(0, 2),
            maxItems=st.integers(0, 3),
            uniqueItems=st.booleans(),
            contains=inner,
        ),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
        st.sampled_from(["anyOf", "allOf", "oneOf"]).flatmap(lambda keyword: lists.map(lambda parts: {keyword: parts})),
        inner.map(lambda part: {"not": part}),
    )


JSON_SCHEMAS: st.SearchStrategy[Json] = st.recursive(
    build_keywords(type=st.sampled_from(["integer", "string", "object"])), build_schemas, max_leaves=6
)
SCHEMA_DOCUMENTS = st.builds(
    lambda top, one, two: {**top, "$defs": {"one": one, "two": two}},
    JSON_SCHEMAS.filter(lambda s: isinstance(s, dict)),
    JSON_SCHEMAS,
    JSON_SCHEMAS,
)


def list_schema_paths(schema: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the path to every schema inside a schema."""
    paths = [path]
    if isinstance(schema, dict):
        for keyword in ("properties", "patternProperties", "$defs"):
            for name, part in schema.get(keyword, {}).items():
                paths += list_schema_paths(part, (*path, keyword, name))
        for keyword in ("anyOf", "allOf", "oneOf", "prefixItems"):
            for index, part in enumerate(schema.get(keyword, [])):
                paths += list_schema_paths(part, (*path, keyword, index))
        for keyword in ("items", "additionalProperties", "not", "if", "then", "else", "contains"):
            if keyword in schema:
                paths += list_schema_paths(schema[keyword], (*path, keyword))
    return paths


def replace_schema_at(schema: Json, path: tuple[str | int, ...], part: Json) -> Json:
    if not path:
        return part
    copy: Any = dict(schema) if isinstance(schema, dict) else list(schema)
    copy[path[0]] = replace_schema_at(copy[path[0]], path[1:], part)
    return copy


def get_schema_at(schema: Json, path: tuple[str | int, ...]) -> Json:
    for part in path:
        schema = schema[part]
    return schema


@st.composite
def schema_edits(draw: st.DrawFn) -> tuple[Json, Json]:
    """Draw a schema and the result of an edit at one place in it."""
    old = draw(SCHEMA_DOCUMENTS)
    path = draw(st.sampled_from(list_schema_paths(old)))
    before = get_schema_at(old, path)
    after = draw(JSON_SCHEMAS)
    if isinstance(before, dict):
        keyword = draw(st.sampled_from([None, *(before if path else before.keys() - {"$defs"})]))
        if keyword is not None:
            after = {name: value for name, value in before.items() if name != keyword}
        elif isinstance(after, dict):
            after = {**before, **after}
    return old, replace_schema_at(old, path, after) if path or isinstance(after, dict) else old


def is_valid_schema(schema: Json) -> bool:
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return False
    return True


SCHEMA_SIDES = st.sampled_from([ContractSide.INPUT, ContractSide.OUTPUT])
SEARCH_SETTINGS = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SEARCH_SETTINGS
@given(schema_edits(), SCHEMA_SIDES, st.lists(JSON_VALUES, min_size=5, max_size=15))
def test_no_value_ever_contradicts_a_safe_verdict(
    edit: tuple[Json, Json], side: ContractSide, values: list[Json]
) -> None:
    old, new = edit
    assume(is_valid_schema(old) and is_valid_schema(new))
    findings = compare_schemas(old, new, side)
    safe = all(one.rule.level is not BumpLevel.MAJOR for one in findings)
    assume(safe or SchemaWalk(old, new, side).run().sound)
    small, large = map(build_checker, side.order_pair(old, new))
    added_names = {
        one.pointer.rpartition("/")[2] for one in findings if one.rule.id.endswith("_ADDED")
    }  # optional additions are forgiven, so that only values without them count

    for value in values:
        if not uses_new_names(value, old, added_names):
            assert large(value) or not small(value)


@SEARCH_SETTINGS
@given(schema_edits(), SCHEMA_SIDES)
def test_every_witness_shows_what_it_claims(edit: tuple[Json, Json], side: ContractSide) -> None:
    old, new = edit
    assume(is_valid_schema(old) and is_valid_schema(new))
    small, large = side.order_pair(old, new)

    for finding in compare_schemas(old, new, side):
        if finding.witness is not None:
            assert accepts_value(small, finding.witness.instance)
            assert not accepts_value(large, finding.witness.instance)


@SEARCH_SETTINGS
@given(schema_edits(), SCHEMA_SIDES)
def test_there_are_findings_exactly_when_there_is_a_difference(edit: tuple[Json, Json], side: ContractSide) -> None:
    old, new = edit
    differ = json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True)

    assert bool(compare_schemas(old, new, side)) is differ


@given(SCHEMA_DOCUMENTS)
def test_nothing_changed_is_nothing_found(schema: Json) -> None:
    one = build_contract(tools={"search": build_tool(inputSchema=schema, outputSchema=schema)})

    assert compare_snapshots(one, json.loads(json.dumps(one))).findings == ()


@SEARCH_SETTINGS
@given(schema_edits(), st.randoms(use_true_random=False))
def test_the_order_in_which_keys_are_written_never_matters(edit: tuple[Json, Json], chance: random.Random) -> None:
    old, new = (build_contract(tools={"search": build_tool(inputSchema=schema)}) for schema in edit)

    straight = compare_snapshots(old, new)

    assert compare_snapshots(shuffle_keys(old, chance), shuffle_keys(new, chance)).as_json() == straight.as_json()
    assert list(straight.findings) == sorted(straight.findings, key=lambda finding: finding.sort_key)


def test_a_witness_does_not_depend_on_the_order_of_keys_either() -> None:
    names = ["c", "a", "b"]
    shuffled_schemas: Json
    sorted_schemas: Json
    shuffled_schemas, sorted_schemas = (dict.fromkeys(order, STRING_SCHEMA) for order in (names, sorted(names)))

    reports = [
        compare_tools(
            {"inputSchema": build_input_schema(**part)},
            {"inputSchema": {**build_input_schema(**part), **ONE_PROPERTY_SCHEMA}},
        )
        for part in (shuffled_schemas, sorted_schemas)
    ]

    assert reports[0].as_json() == reports[1].as_json()


ONE_PROPERTY_SCHEMA = {"maxProperties": 1}


def shuffle_keys(value: Json, rng: random.Random) -> Json:
    if isinstance(value, dict):
        names = list(value)
        rng.shuffle(names)
        return {name: shuffle_keys(value[name], rng) for name in names}
    return [shuffle_keys(part, rng) for part in value] if isinstance(value, list) else value
