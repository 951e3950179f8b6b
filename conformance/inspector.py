"""The MCP Inspector's command line: a second client, by other people, over stdio, in both eras."""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from conformance.npm import Tools
from conformance.processes import Broken, Ended, finished

ERAS = ("legacy", "modern")

FIXTURE = (sys.executable, "-m", "conformance.fixture", "stdio")
CLEATS = (sys.executable, "-m", "cleats", "serve")

LIMIT = 60.0
"""Seconds for one invocation, which takes two or three."""

# The Inspector's exit codes. Five has two meanings, so the code in its message counts as well.
OK, RPC_ERROR, TOOL_ERROR = 0, 1, 5


@dataclass(frozen=True, slots=True)
class Probe:
    """One invocation: what to ask, how the Inspector must exit, and what it must have seen."""

    name: str
    arguments: Sequence[str]
    code: int
    saw: Callable[[Any], bool]
    """Looks at the JSON on stdout when the exit code is 0, at that on stderr when it is not."""

    server: Sequence[str] = FIXTURE


def _call(tool: str, arguments: str = "{}") -> Sequence[str]:
    return ["tools/call", "--tool-name", tool, "--tool-args-json", arguments]


def _lists(name: str) -> Callable[[Any], bool]:
    return lambda seen: name in {tool["name"] for tool in seen["result"]["tools"]}


def _error(code: str) -> Callable[[Any], bool]:
    return lambda seen: bool(seen["error"]["code"] == code)


PROBES: Sequence[Probe] = (
    Probe("tools/list", ["tools/list"], OK, _lists("test_simple_text")),
    Probe("tools/list --strict", ["tools/list", "--strict"], OK, _lists("test_simple_text")),
    Probe(
        "tools/list --strict of `cleats serve`",
        ["tools/list", "--strict"],
        OK,
        _lists("check_status"),
        CLEATS,
    ),
    Probe(
        "tools/call",
        _call("test_simple_text"),
        OK,
        lambda seen: bool(seen["result"]["content"][0]["text"]) and not seen["result"]["isError"],
    ),
    Probe(
        "tools/call that fails", _call("test_error_handling"), TOOL_ERROR, _error("tool_is_error")
    ),
    Probe(
        "tools/call with bad arguments",
        _call("header_region", '{"unheard": "of"}'),
        RPC_ERROR,
        lambda seen: "unheard" in seen["error"]["message"],
    ),
)


async def ask(tools: Tools, probe: Probe, era: str) -> str:
    """What went wrong; nothing when the Inspector saw what it should."""
    command = [tools.inspector, "--cli", *probe.server, "--protocol-era", era]
    options = ["--format", "json", "--quiet", "--method", *probe.arguments]
    try:
        ended = await finished([*command, *options], env=tools.env, limit=LIMIT)
    except Broken as error:
        return str(error)
    seen = _json(ended.stdout if probe.code == OK else ended.stderr)
    with suppress(KeyError, IndexError, TypeError):
        if ended.code == probe.code and probe.saw(seen):
            return ""
    return _disappointment(ended, probe)


def _json(output: str) -> Any:
    """The JSON in an output that may have other lines around it."""
    for line in output.splitlines():
        with suppress(ValueError):
            return json.loads(line)
    return None


def _disappointment(ended: Ended, probe: Probe) -> str:
    said = (ended.stderr.strip() or ended.stdout.strip())[-500:]
    return f"exit code {ended.code}, expected {probe.code}; it said: {said}"
