"""What is wrong with the promises of a toolset, before anybody relies on them.

Ours are held to these rules by a test. One that another package brings is held to them when it is
loaded, so that its tools keep what every caller may expect: closed schemas, numbers that can rise,
examples that work.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Tool, Toolset
from cleats.contract.violations import Validator

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""A name that every client takes: MCP's characters, and a length that the strictest model has."""

SEMVER: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def flaws(toolset: Toolset) -> Iterator[str]:
    """Every broken rule of a toolset, as a sentence about it without its full stop."""
    if not NAME.fullmatch(toolset.name):
        yield f"{toolset.name!r} is no name for a toolset"
    if not toolset.purpose:
        yield "it has no purpose"
    if not toolset.tools:
        yield "it has no tools"
    names = [name for tool in toolset.tools for name in names_of(tool)]
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{times} of its tools are called {name!r}"
        if not NAME.fullmatch(name):
            yield f"{name!r} is no name for a tool"
    for tool in toolset.tools:
        yield from (f"{tool.name}: {flaw}" for flaw in _of_tool(tool))


def names_of(tool: Tool) -> tuple[str, ...]:
    """A tool's name, and those that it used to have."""
    return tool.name, *(alias.name for alias in tool.aliases)


def _of_tool(tool: Tool) -> Iterator[str]:
    if not tool.description:
        yield "it has no description"
    if tool.version < 1:
        yield f"its version is {tool.version}, and the first one is 1"
    if tool.timeout is not None and tool.timeout <= 0:
        yield f"its timeout is {tool.timeout:g} s"
    for code in tool.errors:
        if not isinstance(code, ErrorCode):
            yield f"{code!r} is no error code"
    yield from _of_output(tool)
    if tool.input.get("type") != "object":
        yield "its input schema is not that of an object"
    elif tool.input.get("additionalProperties") is not False:
        yield "its input schema is open, and unknown arguments would be ignored"
    elif flaw := _uncompiled(tool.input):
        yield f"its input schema is none: {flaw}"
    else:
        yield from _of_examples(tool)


def _of_output(tool: Tool) -> Iterator[str]:
    if tool.output is None:
        if tool.payload is not CONTENT:
            yield "it has no output schema"
    elif tool.output.get("type") != "object":
        yield "its output schema is not that of an object"
    elif flaw := _uncompiled(tool.output):
        yield f"its output schema is none: {flaw}"


def _of_examples(tool: Tool) -> Iterator[str]:
    for number, example in enumerate(tool.examples, start=1):
        try:
            tool.bind(example.get("arguments", {}))
        except ToolError as error:
            yield f"its example {number} does not fit: {error.message}"


def _uncompiled(schema: Any) -> str:
    try:
        Validator(schema)
    except ValueError as error:  # jsonschema_rs raises its own kinds of it
        return next(iter(str(error).splitlines()), "")
    return ""
