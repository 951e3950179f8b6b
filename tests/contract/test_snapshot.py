"""Tests of the contract as files: what is listed, what is released, and the codes that it has."""

import json
from itertools import pairwise
from typing import Any

import pytest

from cleats import app
from cleats.contract import snapshot as snapshots
from cleats.contract.compat import compare_snapshots
from cleats.contract.errors import CODES_BEYOND_SPECS, ErrorCode, ToolError
from cleats.contract.tools import Tool
from cleats.settings import Settings
from tests.specs.a import SPEC_CODES
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement

RELEASED_FOLDER = REPOSITORY_ROOT / "contracts" / "released"
TOOLS = list(app.build_registry(Settings(), app.BUILTIN_TOOLSETS))


def load_releases() -> list[dict[str, Any]]:
    paths = sorted(RELEASED_FOLDER.glob("*.json"), key=lambda path: [int(part) for part in path.stem.split(".")])
    return [json.loads(path.read_bytes()) for path in paths]


def test_a_released_contract_is_stored_under_its_version() -> None:
    names = {path.stem: json.loads(path.read_bytes())["schemaVersion"] for path in RELEASED_FOLDER.glob("*.json")}

    assert names
    assert all(name == version for name, version in names.items())


@requirement("a:definition:monotonic", "b:artifacts:snapshot")
def test_the_numbers_of_tools_and_of_the_contract_never_fall_from_release_to_release() -> None:
    current_contract = app.build_contract_snapshot(Settings(), full_results=True)

    for old, new in pairwise([*load_releases(), current_contract]):
        report = compare_snapshots(old, new)
        assert report.ok, report.as_json()
        for name in old["tools"].keys() & new["tools"].keys():
            assert new["tools"][name]["schemaVersion"] >= old["tools"][name]["schemaVersion"], name


@requirement("a:definition:monotonic")
def test_a_number_that_falls_is_refused() -> None:
    old = app.build_contract_snapshot(Settings())
    new = json.loads(json.dumps(old))
    new["tools"]["search"]["schemaVersion"] -= 1

    assert not compare_snapshots(old, new).ok


def test_the_file_of_results_completes_the_listed_contract() -> None:
    listed = app.build_contract_snapshot(Settings())
    full = app.build_contract_snapshot(Settings(), full_results=True)

    assert listed != full
    assert snapshots.attach_results(listed, snapshots.extract_results(full)) == full
    committed_results = (REPOSITORY_ROOT / "contracts" / "results.json").read_bytes()
    assert committed_results == snapshots.encode_snapshot(snapshots.extract_results(full))


@requirement("a:result:object")
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.output is not None], ids=lambda tool: tool.name)
def test_the_result_of_a_tool_is_an_object(tool: Tool) -> None:
    assert tool.output is not None
    assert tool.output["type"] == "object"


@requirement("b:artifacts:input-validation")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_arguments_of_every_tool_are_checked_against_its_schema(tool: Tool) -> None:
    with pytest.raises(ToolError) as caught:
        tool.bind({"no_such_argument": 1})

    assert caught.value.code is ErrorCode.INVALID_REQUEST


@requirement("a:error:few-codes")
def test_a_code_that_no_spec_has_is_listed_with_its_reason() -> None:
    added_codes = {code.name for code in ErrorCode} - SPEC_CODES

    assert added_codes == {code.name for code in CODES_BEYOND_SPECS}
    assert all(reason.endswith(".") for reason in CODES_BEYOND_SPECS.values())
