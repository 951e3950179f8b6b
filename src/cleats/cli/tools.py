"""`cleats tools`."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import click

from cleats.cli import completing
from cleats.cli.printing import clip, columns, duration, echo_json, heading, paragraphs
from cleats.contract.binding import RESERVED, Schema
from cleats.contract.errors import KERNEL_CODES, ToolError
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.settings import Settings


@click.command()
@click.argument("toolsets", nargs=-1, metavar="[TOOLSET]...", shell_complete=completing.toolsets)
@click.option(
    "--show",
    "name",
    metavar="TOOL",
    shell_complete=completing.tools,
    help="Explain one tool: arguments, errors, examples.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole definitions as JSON.")
@click.pass_obj
def tools(settings: Settings, toolsets: tuple[str, ...], name: str | None, as_json: bool) -> None:
    """Show the tools this server has: all of them, or those of each TOOLSET.

    \b
    Examples:
      cleats tools                        every tool, one a line
      cleats tools code                   those of one toolset
      cleats tools --show check_status    all about one tool
      cleats tools --json | jq keys       for programs

    The JSON has what `contracts/tools.json` has of each tool: both schemas, the version, the
    timeout, old names, error codes and examples.
    """  # noqa: D301 - click reads the backspace
    from cleats import app  # noqa: PLC0415 - help needs none of it
    from cleats.contract.snapshot import snapshot  # noqa: PLC0415

    check_toolsets(toolsets)
    registry = app.catalogue(settings, toolsets)
    if name is not None:
        tool = find(registry, name)
        if as_json:
            echo_json(snapshot(registry)["tools"][tool.name])
        else:
            click.echo(_page(tool, registry, settings))
    elif as_json:
        echo_json(snapshot(registry)["tools"])
    else:
        click.echo("\n\n".join(_tables(registry, settings)))


def check_toolsets(names: tuple[str, ...]) -> None:
    """Refuse the name of a toolset that there is not."""
    from cleats import app  # noqa: PLC0415 - help needs none of it

    for name in app.unknown(names):
        known = ", ".join(app.names())
        raise click.UsageError(f"There is no toolset {name!r}; there are: {known}.")


def find(registry: Registry, name: str) -> Tool:
    """The tool with this name or alias; a near miss is told the right one."""
    try:
        return registry.find(name)
    except ToolError:
        raise click.UsageError(f"There is no tool {name!r}.{advice(registry, name)}") from None


def advice(registry: Registry, name: str) -> str:
    """What to try instead of a name that no tool has."""
    names = [tool.name for tool in registry]
    names += [alias.name for tool in registry for alias in tool.aliases]
    near = get_close_matches(name, names, n=3)
    return f" Did you mean {' or '.join(near)}?" if near else " `cleats tools` lists them all."


def _tables(registry: Registry, settings: Settings) -> Iterator[str]:
    for toolset in registry.toolsets:
        rows = [("TOOL", "V", "TIMEOUT", "WHAT IT DOES")]
        for tool in sorted(toolset.tools, key=lambda tool: tool.name):
            aliases = ", ".join(alias.name for alias in tool.aliases)
            about = (f"(was {aliases}) " if aliases else "") + summary(tool.text)
            rows.append((tool.name, str(tool.version), _timeout(tool, settings), about))
        origin = f" (from {toolset.package})" if toolset.package else ""
        yield f"{heading(toolset.name)}  {toolset.purpose}{origin}\n{columns(rows, cut=True)}"


def _page(tool: Tool, registry: Registry, settings: Settings) -> str:
    home = next(each for each in registry.toolsets if each.name == registry.home(tool))
    facts = [
        ("toolset", home.name),
        *([("from", home.package)] if home.package else []),
        ("version", str(tool.version)),
        ("timeout", _timeout(tool, settings)),
        ("answer", tool.payload.name),
        ("care", care(tool)),
        *(("old name", f"{a.name}, deprecated since {a.deprecated}") for a in tool.aliases),
    ]
    own = [(code.name, code.value.meaning) for code in tool.errors]
    always = ", ".join(code.name for code in KERNEL_CODES)
    arguments = [
        (row.name, f"{row.kind}{row.presence and ', ' + row.presence}\n{row.about}")
        for row in arguments_of(tool)
    ]
    blocks = [
        heading(tool.name) + "\n" + columns(facts),
        paragraphs(tool.text),
        heading("Arguments") + "\n" + (columns(arguments) if arguments else "  none"),
        heading("Errors") + "\n" + columns([*own, ("any tool's", always)]),
        heading("Examples") + "\n" + "\n".join(f"  {line}" for line in command_lines(tool)),
    ]
    return "\n\n".join(blocks)


class Argument(NamedTuple):
    """A row of a tool's arguments, in words."""

    name: str
    kind: str
    presence: str
    about: str


def arguments_of(tool: Tool) -> list[Argument]:
    """A tool's arguments: the required ones first, else as the schema lists them."""
    required = tool.input.get("required", ())
    properties: Mapping[str, Schema] = tool.input.get("properties", {})
    rows = [
        Argument(name, kind_of(rule), _presence(name, rule, required), rule.get("description", ""))
        for name, rule in properties.items()
    ]
    return sorted(rows, key=lambda row: row.name not in required)


def kind_of(rule: Any) -> str:
    """A schema as a reader would say it: `string`, `integer or null`, `"a" | "b"`, `string[]`."""
    if not isinstance(rule, Mapping):
        return "anything"
    if "const" in rule:
        return _literal(rule["const"])
    if "enum" in rule:
        return " | ".join(map(_literal, rule["enum"]))
    for keyword in ("anyOf", "oneOf"):
        if keyword in rule:
            return " or ".join(dict.fromkeys(map(kind_of, rule[keyword])))
    named = rule.get("type", "anything")
    kinds = [named] if isinstance(named, str) else list(named)
    if "array" in kinds and "items" in rule:
        item = kind_of(rule["items"])
        kinds[kinds.index("array")] = f"({item})[]" if " " in item else f"{item}[]"
    return " or ".join(kinds)


def care(tool: Tool) -> str:
    """The hints of a tool as a sentence."""
    hints = tool.hints
    if hints.read_only:
        words = ["reads only"]
    else:
        words = ["may destroy" if hints.destructive else "writes"]
        words.append("may be repeated" if hints.idempotent else "not to be repeated lightly")
    if hints.open_world:
        words.append("reaches other machines")
    return ", ".join(words)


def summary(text: str) -> str:
    """The first sentence, without its full stop."""
    return re.split(r"(?<=[a-z0-9`)\]])\.\s", clip(text, len(text) + 1), maxsplit=1)[0].rstrip(".")


def command_lines(tool: Tool) -> list[str]:
    """A tool's examples as a reader would type them."""
    examples = [example.get("arguments", {}) for example in tool.examples]
    return [command_line(tool.name, arguments) for arguments in examples or [{}]]


def command_line(name: str, arguments: Mapping[str, Any]) -> str:
    """A call of a tool, for a shell."""
    words = ["cleats", "call", name]
    if arguments:
        words.append(json.dumps(arguments, ensure_ascii=False))
    return shlex.join(words)


def _presence(name: str, rule: Schema, required: Any) -> str:
    if rule.get(RESERVED):
        return "reserved"
    if name in required:
        return "required"
    return f"default {_literal(rule['default'])}" if "default" in rule else ""


def _timeout(tool: Tool, settings: Settings) -> str:
    return duration(settings.timeouts.get(tool.name, tool.timeout) or None)


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
