"""The contract as values: violations, tools, registry, payloads, snapshot."""

import json
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats import app
from cleats.contract import snapshot as snapshots
from cleats.contract.errors import KERNEL_CODES, ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome, Rejected
from cleats.contract.payload import ENVELOPE, ENVELOPE_SCHEMA, LAUNCH, AnswerMeta, format_timestamp
from cleats.contract.registry import Registry
from cleats.contract.tools import Alias, Context, Tool, Toolset, arguments
from cleats.contract.violations import MAX_LISTED_VIOLATIONS, Validator
from cleats.settings import Settings
from tests.support.paths import REPOSITORY_ROOT, TESTS_FOLDER
from tests.support.requirements import requirement

GOLDEN_FOLDER = TESTS_FOLDER / "golden"
COMMITTED_CONTRACT_PATH = REPOSITORY_ROOT / "contracts" / "tools.json"


async def return_nothing(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    return {}


def build_tool(name: str, **fields: Any) -> Tool:
    return Tool(name=name, description="", input=arguments(), run=return_nothing, **fields)


def test_the_wording_of_every_keyword_is_ours_and_does_not_drift() -> None:
    cases = json.loads((GOLDEN_FOLDER / "violations.json").read_text())
    for case in cases:
        violations = [v.as_json() for v in Validator(case["schema"]).find_violations(case["instance"])]

        assert violations == case["violations"], case["schema"]


@pytest.mark.parametrize(
    ("instance", "first", "count"),
    [
        (["no"] * 30_000, "/0", 1),
        ([["no"]] * 15_000, "/0", 1),
        ({f"k{number}": 1 for number in range(1500)}, "/k0", MAX_LISTED_VIOLATIONS),
    ],
)
def test_of_too_many_violations_some_are_listed_and_that_there_are_more_is_said(
    instance: object, first: str, count: int
) -> None:
    schema = {"items": {"enum": ["yes"]}, "properties": {}, "additionalProperties": False}

    *violations, last = Validator(schema).find_violations(instance)

    assert (violations[0].path, len(violations)) == (first, count)
    assert last.keyword == "limit"
    assert Validator(schema).find_violations(["yes"] * 30_000) == []


json_value: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)
SAMPLE_SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "minimum": 0},
        "b": {"type": "array", "items": {"enum": ["x", 1]}, "uniqueItems": True},
        "c": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["d"]}]},
    },
    "required": ["a"],
    "additionalProperties": {"type": "boolean"},
}


@given(st.dictionaries(st.sampled_from("abcd"), json_value))
def test_the_verdict_is_that_of_an_independent_validator(instance: dict[str, Any]) -> None:
    violations = Validator(SAMPLE_SCHEMA).find_violations(instance)

    assert bool(violations) == (not jsonschema.Draft202012Validator(SAMPLE_SCHEMA).is_valid(instance))
    assert violations == sorted(violations)


def test_a_reference_never_goes_to_the_network() -> None:
    with pytest.raises(Exception, match=r"(?i)resource|retriev|external|network|offline"):
        Validator({"$ref": "https://schemas.invalid/x.json"})


def test_defaults_of_the_schema_reach_the_handler() -> None:
    schema = arguments({"a": {"type": "integer", "default": 4}, "b": {"type": "string"}})
    bound = Tool(name="t", description="", input=schema, run=return_nothing).bind({"b": "x"})

    assert bound == {"a": 4, "b": "x"}


def test_every_published_schema_is_closed_and_valid() -> None:
    for served_tool in app.build_registry(Settings()):
        jsonschema.Draft202012Validator.check_schema(served_tool.input)
        assert served_tool.input["type"] == "object"
        assert served_tool.input["additionalProperties"] is False
        if served_tool.output_schema is not None:
            jsonschema.Draft202012Validator.check_schema(served_tool.output_schema)
            assert served_tool.output_schema["type"] == "object"


@requirement("b:tools:one-registry")
def test_no_two_tools_share_a_name_aliases_included() -> None:
    twice = Toolset(name="s", purpose="", tools=[build_tool("a"), build_tool("b", aliases=(Alias("a", "1"),))])

    with pytest.raises(ValueError, match="two tools are called 'a'"):
        Registry([twice])


def test_a_tool_is_found_by_its_name_and_by_its_old_one() -> None:
    registry = Registry([Toolset(name="s", purpose="", tools=[build_tool("b", aliases=(Alias("a", "2.1.0"),))])])

    assert registry.find("a") is registry.find("b")
    assert registry.find_alias("a") == Alias("a", "2.1.0")
    assert registry.find_alias("b") is None
    assert [entry.name for entry in registry] == ["b"]
    with pytest.raises(ToolError, match="no tool is called 'c'"):
        registry.find("c")


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("serch", "Did you mean search? "), ("show", "Did you mean show_file? "), ("zzz", "")],
)
def test_a_name_that_is_nearly_that_of_a_tool_is_answered_with_it(name: str, suggestion: str) -> None:
    registry = Registry([Toolset(name="s", purpose="", tools=[build_tool("search"), build_tool("show_file")])])

    with pytest.raises(ToolError) as error_info:
        registry.find(name)

    assert error_info.value.hint == f"{suggestion}List the tools to see the names this server has."


SAMPLE_OUTCOMES: list[Outcome] = [
    Done({"x": 1}),
    Failed(ToolError(ErrorCode.NO_INDEX, "m", hint="h", details={"ok": True, "result": 1})),
    Rejected(ToolError(ErrorCode.INVALID_REQUEST, "m", details=[{"a": 1}])),
    Cancelled(),
]


@requirement("b:envelope:error", "b:envelope:error-details")
@pytest.mark.parametrize(
    ("error", "message", "details"),
    [
        (ToolError(ErrorCode.NO_INDEX, "gone"), "gone", {"retryable": False}),
        (
            ToolError(ErrorCode.UNAVAILABLE, "away", hint="Wait.", details={"host": "h"}),
            "away. Wait.",
            {"host": "h", "retryable": True, "hint": "Wait."},
        ),
        (
            ToolError(ErrorCode.NOT_FOUND, "Is it there?", hint="No."),
            "Is it there? No.",
            {"retryable": False, "hint": "No."},
        ),
        (ToolError(ErrorCode.INVALID_REQUEST, "wrong.", hint="Fix.", details=[{"a": 1}]), "wrong. Fix.", [{"a": 1}]),
    ],
)
def test_an_error_of_the_envelope_has_a_code_a_message_with_its_hint_and_details_only(
    error: ToolError, message: str, details: object
) -> None:
    body = ENVELOPE.render_outcome(Failed(error), AnswerMeta()).body

    assert body is not None
    assert body["error"] == {"code": error.code.name, "message": message, "details": details}


@requirement("b:envelope:reserved-keys", "b:envelope:success", "b:envelope:error")
@pytest.mark.parametrize("outcome", SAMPLE_OUTCOMES)
def test_every_outcome_seals_into_the_one_envelope(outcome: Outcome) -> None:
    meta = AnswerMeta(request_id="r", duration_ms=1.5, repo="/r", warnings=[{"code": "W"}])

    answer = ENVELOPE.render_outcome(outcome, meta)

    assert answer.body is not None
    jsonschema.validate(answer.body, ENVELOPE_SCHEMA)
    assert answer.ok is answer.body["ok"] is isinstance(outcome, Done)
    assert answer.body.keys() == {"ok", "result" if answer.ok else "error", "_meta"}
    assert answer.body["_meta"].keys() == {
        "schemaVersion",
        "toolingVersion",
        "ts",
        "requestId",
        "durationMs",
        "repo",
        "warnings",
    }


def test_what_is_not_known_is_left_out_of_the_meta() -> None:
    assert AnswerMeta().as_json().keys() == {"schemaVersion", "toolingVersion", "ts"}


@given(st.floats(min_value=0, max_value=4e9))
def test_a_timestamp_is_utc_with_milliseconds(moment: float) -> None:
    jsonschema.validate(format_timestamp(moment), {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"})


def test_the_timestamp_of_a_known_moment() -> None:
    assert format_timestamp(1769258096.789) == "2026-01-24T12:34:56.789Z"


@requirement("b:errors:one-source")
def test_every_error_row_is_complete() -> None:
    for code in ErrorCode:
        assert 400 <= code.http < 600
        assert -32768 <= code.rpc <= -32000
        assert code.value.meaning.endswith(".")
        assert code.value.remedy.endswith(".")
    assert set(KERNEL_CODES) <= set(ErrorCode)


@requirement("a:tests:snapshot", "a:names:stable", "b:artifacts:snapshot", "b:tools:one-registry")
def test_the_committed_contract_is_the_one_we_serve() -> None:
    current = snapshots.encode_snapshot(app.build_contract_snapshot(Settings()))

    assert COMMITTED_CONTRACT_PATH.read_bytes() == current, "run: cleats contract check --accept"
    entries = json.loads(current)["tools"].values()
    assert all({"description", "inputSchema", "schemaVersion", "annotations"} <= entry.keys() for entry in entries)


def test_an_argument_that_is_nearly_right_is_told_its_name() -> None:
    schema = arguments({"query": {"type": "string"}, "type": {"type": "string"}})
    tool = Tool(name="search", description="x", input=schema, run=lambda _a, _c: None)  # type: ignore[arg-type,return-value]

    with pytest.raises(ToolError) as error_info:
        tool.bind({"q": "a", "typ": "b"})

    assert error_info.value.hint == "Did you mean query and type? See the input schema of search."
    assert "/q: " in str(error_info.value)
    assert "/typ: " in str(error_info.value)


def test_an_argument_that_other_tools_call_otherwise_is_told_its_name() -> None:
    properties = {name: {"type": "string"} for name in ("query", "lint", "top", "type")}
    search_tool = Tool(name="search", description="x", input=arguments(properties), run=return_nothing)

    with pytest.raises(ToolError) as error_info:
        search_tool.bind({"limit": "", "kind": "", "file_path": ""})

    assert error_info.value.hint == "Did you mean top and type? See the input schema of search."


def test_only_the_first_few_strange_arguments_are_compared_with_the_known_ones() -> None:
    """Bound the work: one request could otherwise keep all others waiting."""
    properties = {name: {"type": "string"} for name in ("query", "type", "lang", "mode")}
    search_tool = Tool(name="search", description="x", input=arguments(properties), run=return_nothing)

    with pytest.raises(ToolError) as error_info:
        search_tool.bind({"qery": "", "tipe": "", "lagn": "", "moed": "", "mode" * 30: ""})

    assert error_info.value.hint == ("Did you mean query and type and lang? See the input schema of search.")


def test_a_launch_answer_is_the_tools_own_object_with_ok_first() -> None:
    body = LAUNCH.render_outcome(Done({"run_id": "r_1"}), AnswerMeta()).body

    assert json.dumps(body) == '{"ok": true, "run_id": "r_1"}'


@requirement("e:code:internal")
@pytest.mark.parametrize("details", [None, {"reason": "x"}, {"cause_class": "Ours"}])
def test_an_internal_failure_of_a_launch_always_names_its_class(details: Any) -> None:
    error = ToolError(ErrorCode.INTERNAL, "no", details=details)
    error.__cause__ = KeyError("x")

    body = LAUNCH.render_outcome(Failed(error), AnswerMeta()).body

    assert body is not None
    cause = "Ours" if details and "cause_class" in details else "KeyError"
    assert body["error"]["details"] == {**(details or {}), "cause_class": cause}


def test_a_launch_failure_always_has_its_four_fields_and_the_run_when_it_is_known() -> None:
    wrong = ToolError(ErrorCode.INVALID_REQUEST, "no", hint="Look.", details=[{"keyword": "type"}])

    body = LAUNCH.render_outcome(Rejected(wrong), AnswerMeta(notes={"run_id": "r_1"})).body
    cancelled_body = LAUNCH.render_outcome(Cancelled(), AnswerMeta()).body

    assert body == {
        "ok": False,
        "run_id": "r_1",
        "error": {
            "code": "INVALID_INPUT",
            "message": "no",
            "retryable": False,
            "details": {"violations": [{"keyword": "type"}], "hint": "Look."},
        },
    }
    assert cancelled_body is not None
    assert cancelled_body["error"] | {"message": ""} == {
        "code": "CANCELLED",
        "message": "",
        "retryable": False,
        "details": {},
    }
