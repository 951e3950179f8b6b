"""The command line of the MCP Inspector: a second, independent client over stdio, in both eras."""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from conformance.npm import ConformanceTools
from conformance.processes import BrokenProcessError, FinishedProcess, run_command

PROTOCOL_ERAS = ("legacy", "modern")

FIXTURE_COMMAND = (sys.executable, "-m", "conformance.fixture", "stdio")
CLEATS_COMMAND = (sys.executable, "-m", "cleats", "serve")

PROBE_TIMEOUT_SECONDS = 60.0
"""Seconds for one invocation, which takes two or three."""

# The Inspector's exit codes. Five has two meanings, so the code in its message is checked as well.
OK_EXIT_CODE, RPC_ERROR_EXIT_CODE, TOOL_ERROR_EXIT_CODE = 0, 1, 5


@dataclass(frozen=True, slots=True)
class InspectorProbe:
    """One invocation: its arguments, the expected exit code, and a test of the output."""

    name: str
    arguments: Sequence[str]
    code: int
    is_expected: Callable[[Any], bool]
    """Tests the JSON on stdout if the exit code is 0, and that on stderr otherwise."""

    server: Sequence[str] = FIXTURE_COMMAND


def _build_call(tool: str, arguments: str = "{}") -> Sequence[str]:
    return ["tools/call", "--tool-name", tool, "--tool-args-json", arguments]


def _expect_tool(name: str) -> Callable[[Any], bool]:
    return lambda output: name in {tool["name"] for tool in output["result"]["tools"]}


def _expect_error(code: str) -> Callable[[Any], bool]:
    return lambda output: bool(output["error"]["code"] == code)


INSPECTOR_PROBES: Sequence[InspectorProbe] = (
    InspectorProbe("tools/list", ["tools/list"], OK_EXIT_CODE, _expect_tool("test_simple_text")),
    InspectorProbe("tools/list --strict", ["tools/list", "--strict"], OK_EXIT_CODE, _expect_tool("test_simple_text")),
    InspectorProbe(
        "tools/list --strict of `cleats serve`",
        ["tools/list", "--strict"],
        OK_EXIT_CODE,
        _expect_tool("check_status"),
        CLEATS_COMMAND,
    ),
    InspectorProbe(
        "tools/call",
        _build_call("test_simple_text"),
        OK_EXIT_CODE,
        lambda output: bool(output["result"]["content"][0]["text"]) and not output["result"]["isError"],
    ),
    InspectorProbe(
        "tools/call that fails",
        _build_call("test_error_handling"),
        TOOL_ERROR_EXIT_CODE,
        _expect_error("tool_is_error"),
    ),
    InspectorProbe(
        "tools/call with bad arguments",
        _build_call("header_region", '{"unheard": "of"}'),
        RPC_ERROR_EXIT_CODE,
        lambda output: "unheard" in output["error"]["message"],
    ),
)


async def run_probe(tools: ConformanceTools, probe: InspectorProbe, era: str) -> str:
    """Run a probe; return a description of the failure, empty if it succeeded."""
    command = [tools.inspector, "--cli", *probe.server, "--protocol-era", era]
    options = ["--format", "json", "--quiet", "--method", *probe.arguments]
    try:
        completed = await run_command([*command, *options], env=tools.env, limit=PROBE_TIMEOUT_SECONDS)
    except BrokenProcessError as error:
        return str(error)
    output = _find_json(completed.stdout if probe.code == OK_EXIT_CODE else completed.stderr)
    with suppress(KeyError, IndexError, TypeError):
        if completed.code == probe.code and probe.is_expected(output):
            return ""
    return _describe_failure(completed, probe)


def _find_json(output: str) -> Any:
    """Return the first JSON line of an output that may have other lines around it."""
    for line in output.splitlines():
        with suppress(ValueError):
            return json.loads(line)
    return None


def _describe_failure(completed: FinishedProcess, probe: InspectorProbe) -> str:
    output = (completed.stderr.strip() or completed.stdout.strip())[-500:]
    return f"exit code {completed.code}, expected {probe.code}; it said: {output}"
