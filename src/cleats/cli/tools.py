"""The `cleats tools` command."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import click

from cleats import app
from cleats.cli import tool_command
from cleats.cli.output import clip_text, echo_json, format_columns, format_duration, format_paragraphs, style_heading
from cleats.contract.arguments import RESERVED_KEYWORD, Schema
from cleats.contract.errors import KERNEL_CODES
from cleats.contract.registry import Registry
from cleats.contract.snapshot import build_snapshot
from cleats.contract.tools import Tool
from cleats.settings import Settings

_SHOW_HELP = "Explain one tool: arguments, errors, examples."


@click.command()
@click.argument("toolsets", nargs=-1, metavar="[TOOLSET]...", shell_complete=tool_command.complete_toolsets)
@click.option("--show", "name", metavar="TOOL", shell_complete=tool_command.complete_tools, help=_SHOW_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print the full definitions as JSON.")
@click.pass_obj
def tools(settings: Settings, toolsets: tuple[str, ...], name: str | None, as_json: bool) -> None:
    """List the tools: all of them, or those of each TOOLSET.

    Examples:
      cleats tools                        every tool, one per line
      cleats tools code                   the tools of one toolset
      cleats tools --show check_status    one tool in detail
      cleats tools --json | jq keys       for programs

    The JSON has the definition of each tool as in `contracts/tools.json`: schemas, version, timeout, aliases,
    error codes and examples.
    """
    check_toolsets(toolsets)
    registry = app.build_registry(settings, toolsets)
    tool = None if name is None else registry.get(name)
    if tool is None and name is not None:
        raise click.UsageError(f"Unknown tool {name!r}.{suggest_tool_names(registry, name)}")
    if as_json:
        entries = build_snapshot(registry, full_results=True)["tools"]
        echo_json(entries[tool.name] if tool else entries)
    else:
        click.echo(_render_page(tool, registry, settings) if tool else "\n\n".join(_render_tables(registry, settings)))


def check_toolsets(names: tuple[str, ...]) -> None:
    """Reject names of toolsets that do not exist."""
    for name in app.find_unknown_toolsets(names):
        toolset_names = ", ".join(app.list_toolset_names())
        raise click.UsageError(f"Unknown toolset {name!r}. Known toolsets: {toolset_names}.")


def suggest_tool_names(registry: Registry, name: str) -> str:
    """Suggest the names of tools that resemble an unknown name."""
    names = [tool.name for tool in registry]
    names += [alias.name for tool in registry for alias in tool.aliases]
    close_matches = get_close_matches(name, names, n=3)
    return f" Did you mean {' or '.join(close_matches)}?" if close_matches else " `cleats tools` lists them all."


def _render_tables(registry: Registry, settings: Settings) -> Iterator[str]:
    for toolset in registry.toolsets:
        rows = [("TOOL", "V", "TIMEOUT", "WHAT IT DOES")]
        for tool in sorted(toolset.tools, key=lambda tool: tool.name):
            aliases = ", ".join(alias.name for alias in tool.aliases)
            about = (f"(was {aliases}) " if aliases else "") + first_sentence(tool.current_description)
            rows.append((tool.name, str(tool.version), _format_timeout(tool, settings), about))
        origin = f" (from {toolset.package})" if toolset.package else ""
        yield f"{style_heading(toolset.name)}  {toolset.purpose}{origin}\n{format_columns(rows, cut=True)}"


def _render_page(tool: Tool, registry: Registry, settings: Settings) -> str:
    home = next(candidate for candidate in registry.toolsets if candidate.name == registry.find_toolset_name(tool))
    facts = [
        ("toolset", home.name),
        *([("from", home.package)] if home.package else []),
        ("version", str(tool.version)),
        ("timeout", _format_timeout(tool, settings)),
        ("answer", tool.payload.name),
        ("care", describe_hints(tool)),
        *(("old name", f"{item.name}, deprecated since {item.deprecated}") for item in tool.aliases),
    ]
    errors = [(code.name, code.value.meaning) for code in tool.errors]
    errors.append(("any tool's", ", ".join(code.name for code in KERNEL_CODES)))
    arguments = [
        (row.name, f"{row.kind}{row.presence and ', ' + row.presence}\n{row.about}") for row in list_arguments(tool)
    ]
    tables = {
        "Arguments": format_columns(arguments) if arguments else "  none",
        "Errors": format_columns(errors),
        "Examples": "\n".join(f"  {line}" for line in format_examples(tool)),
    }
    blocks = [style_heading(tool.name) + "\n" + format_columns(facts), format_paragraphs(tool.current_description)]
    return "\n\n".join([*blocks, *(f"{style_heading(title)}\n{table}" for title, table in tables.items())])


class ArgumentRow(NamedTuple):
    """A described argument of a tool."""

    name: str
    kind: str
    presence: str
    about: str


def list_arguments(tool: Tool) -> list[ArgumentRow]:
    """Return a tool's arguments: the required ones first, otherwise in the order of the schema."""
    required = tool.input.get("required", ())
    properties: Mapping[str, Schema] = tool.input.get("properties", {})
    rows = [
        ArgumentRow(name, describe_type(rule), _describe_presence(name, rule, required), rule.get("description", ""))
        for name, rule in properties.items()
    ]
    return sorted(rows, key=lambda row: row.name not in required)


def describe_type(rule: Any) -> str:
    """Describe a schema briefly: `string`, `integer or null`, `"a" | "b"`, `string[]`."""
    if not isinstance(rule, Mapping):
        return "anything"
    if "const" in rule:
        return _format_literal(rule["const"])
    if "enum" in rule:
        return " | ".join(map(_format_literal, rule["enum"]))
    for keyword in ("anyOf", "oneOf"):
        if keyword in rule:
            return " or ".join(dict.fromkeys(map(describe_type, rule[keyword])))
    declared_types = rule.get("type", "anything")
    kinds = [declared_types] if isinstance(declared_types, str) else list(declared_types)
    if "array" in kinds and "items" in rule:
        item = describe_type(rule["items"])
        kinds[kinds.index("array")] = f"({item})[]" if " " in item else f"{item}[]"
    return " or ".join(kinds)


def describe_hints(tool: Tool) -> str:
    """Describe the hints of a tool in a phrase."""
    hints = tool.hints
    if hints.read_only:
        words = ["reads only"]
    else:
        words = ["may destroy" if hints.destructive else "writes"]
        words.append("can be repeated safely" if hints.idempotent else "repeating it is not safe")
    if hints.open_world:
        words.append("reaches other machines")
    return ", ".join(words)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, without its full stop."""
    return re.split(r"(?<=[a-z0-9`)\]])\.\s", clip_text(text, len(text) + 1), maxsplit=1)[0].rstrip(".")


def format_examples(tool: Tool) -> list[str]:
    """Format a tool's examples as shell commands."""
    examples = [example.get("arguments", {}) for example in tool.examples] or [{}]
    words = [[json.dumps(arguments, ensure_ascii=False)] if arguments else [] for arguments in examples]
    return [shlex.join(["cleats", "call", tool.name, *call_words]) for call_words in words]


def _describe_presence(name: str, rule: Schema, required: Any) -> str:
    if rule.get(RESERVED_KEYWORD):
        return "reserved"
    if name in required:
        return "required"
    return f"default {_format_literal(rule['default'])}" if "default" in rule else ""


def _format_timeout(tool: Tool, settings: Settings) -> str:
    return format_duration(settings.timeouts.get(tool.name, tool.timeout) or None)


def _format_literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
