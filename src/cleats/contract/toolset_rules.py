"""The rules that every toolset must keep before anybody relies on it.

A test checks the built-in toolsets against these rules. A toolset from another package is checked when it is loaded, so
that its tools meet every caller's expectations: closed schemas, versions that can rise, examples that work.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Tool, Toolset
from cleats.contract.violations import Validator

NAME_PATTERN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""A name that every client accepts: MCP's characters, within the length limit of the strictest model."""


def find_flaws(toolset: Toolset) -> Iterator[str]:
    """Yield every broken rule of a toolset, as a sentence without its full stop."""
    if not NAME_PATTERN.fullmatch(toolset.name):
        yield f"{toolset.name!r} is not a valid name of a toolset"
    if not toolset.purpose:
        yield "it has no purpose"
    if not toolset.tools:
        yield "it has no tools"
    names = [name for tool in toolset.tools for name in list_tool_names(tool)]
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{count} of its tools are called {name!r}"
        if not NAME_PATTERN.fullmatch(name):
            yield f"{name!r} is not a valid name of a tool"
    for tool in toolset.tools:
        yield from (f"{tool.name}: {flaw}" for flaw in _find_tool_flaws(tool))


def list_tool_names(tool: Tool) -> tuple[str, ...]:
    """Return the name of a tool, followed by its former names."""
    return tool.name, *(alias.name for alias in tool.aliases)


def _find_tool_flaws(tool: Tool) -> Iterator[str]:
    if not tool.description:
        yield "it has no description"
    if tool.version < 1:
        yield f"its version is {tool.version}, and the first one is 1"
    if tool.timeout is not None and tool.timeout <= 0:
        yield f"its timeout is {tool.timeout:g} s"
    for code in tool.errors:
        if not isinstance(code, ErrorCode):
            yield f"{code!r} is not an error code"
    yield from _find_output_flaws(tool)
    if tool.input.get("type") != "object":
        yield "its input schema does not describe an object"
    elif tool.input.get("additionalProperties") is not False:
        yield "its input schema allows unknown arguments; set additionalProperties to false"
    elif flaw := _find_schema_error(tool.input):
        yield f"its input schema is invalid: {flaw}"
    else:
        yield from _find_example_flaws(tool)


def _find_output_flaws(tool: Tool) -> Iterator[str]:
    if tool.output is None:
        if tool.payload is not CONTENT:
            yield "it has no output schema"
    elif tool.output.get("type") != "object":
        yield "its output schema does not describe an object"
    elif flaw := _find_schema_error(tool.output):
        yield f"its output schema is invalid: {flaw}"


def _find_example_flaws(tool: Tool) -> Iterator[str]:
    for number, example in enumerate(tool.examples, start=1):
        try:
            tool.bind(example.get("arguments", {}))
        except ToolError as error:
            yield f"its example {number} does not match the schema: {error.message}"


def _find_schema_error(schema: Any) -> str:
    try:
        Validator(schema)
    except ValueError as error:  # jsonschema_rs raises its own kinds of it
        return next(iter(str(error).splitlines()), "")
    return ""
