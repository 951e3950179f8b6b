"""What `cleats search` says besides its hits: notes, why there are none, and what went wrong."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

import click

from cleats.cli.asking import worded
from cleats.cli.printing import asked_for_json, echo_json
from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.search.arguments import BY_NAME

REASONS: Final = frozenset({"index_empty", "filtered_out"})
"""Notes that say why nothing was found, which `nothing` says in words of the command line."""


def notes(answer: Mapping[str, Any]) -> Iterator[str]:
    """What has to be known of an answer."""
    for note in answer["stats"].get("notes", []):
        if note["code"] not in REASONS:
            yield note["message"]


def nothing(answer: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Why nothing was found."""
    stats = answer["stats"]
    if stats.get("branchMatch") is False:
        built = stats["branch"] or "no branch"
        return f"Nothing: the index was built on {built}, not on {stats['branchFilter']}."
    if not stats["chunks"]:
        return "Nothing: the index is empty."
    if left := sum(stats["considered"].values()):
        return f"Nothing fits among {left:,} chunks."
    if "filters" not in stats:
        return f"Nothing: the index has no chunk of --mode {wanted.get('mode', 'both')}."
    return "\n".join(["Nothing: no chunk passes the filters.", *_filters(stats, wanted)])


def _filters(stats: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    for each in stats["filters"]:
        value = wanted.get(each["argument"])
        given = "" if value is True else " " + " ".join(map(str, _listed(value)))
        chunks = f"{each['chunks']:,} chunks have it" if each["chunks"] != 1 else "1 chunk has it"
        known = f"; there is {', '.join(each['known'])}" if each.get("known") else ""
        yield f"  {_flag(each['argument'])}{given}: {chunks}{known}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _flag(argument: str) -> str:
    row = BY_NAME.get(argument)
    return row.flag.split("/")[-1] if row and row.flag else argument


def fail(error: ToolError, wanted: Mapping[str, Any]) -> NoReturn:
    """Say what went wrong, in words of the command line, and leave."""
    if asked_for_json():
        echo_json({"ok": False, "error": error.as_json()})
        sys.exit(2)
    query = wanted["query"]
    position = getattr(error, "position", None)
    if position is not None and query.strip() and "\n" not in query:
        click.echo(f"  {query}\n  {' ' * position}^", err=True)
    named = [str(each.get("instancePath", "")).lstrip("/") for each in error.details or ()]
    flags = {name: _flag(name) for name in named if name in BY_NAME}
    click.echo(f"Error: {worded(error.message, flags)}", err=True)
    if error.code is ErrorCode.NO_INDEX and "backend" in named:
        click.echo("Run `cleats sqlite build` first, or leave --backend out.", err=True)
    elif error.code is ErrorCode.NO_INDEX and "--full" in error.hint:
        click.echo(
            "Run `cleats index --full`: an update takes over what it does not read.", err=True
        )
    elif error.code is ErrorCode.NO_INDEX:
        click.echo("Run `cleats index` first, or search with --refresh.", err=True)
    elif error.hint:
        click.echo(error.hint, err=True)
    sys.exit(2)
