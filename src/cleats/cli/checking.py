"""Files against schemas, for the command line: find them, judge them, report."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from cleats.cli.printing import columns, counted
from cleats.toolsets.assets import naming
from cleats.toolsets.assets.validation import Judge
from cleats.transports.parsing import NotJson, decode

UNREADABLE = frozenset({"io_error", "parse_error"})
_UNKNOWN = {"path": "/schema", "msg": "schema_not_found"}


@dataclass(frozen=True, slots=True)
class File:
    """A file to check."""

    path: str
    named: bool
    """Whether it was named itself; a file found below a folder need not be an asset."""


@dataclass(frozen=True, slots=True)
class Check:
    """A file, the schema it was held against, and what came of it."""

    path: str
    schema: str | None
    payload: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    """Why it could not be read, for people."""

    @property
    def state(self) -> str:
        if not self.payload:
            return "no schema"
        if self.payload["ok"]:
            return "valid"
        return "unreadable" if self.payload["reason"] in UNREADABLE else "invalid"


class Unreadable(Exception):  # noqa: N818 - a state of a file
    """A file that is no document."""

    def __init__(self, reason: str, payload: dict[str, Any]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.payload = {"ok": False, **payload}


def files(paths: Iterable[str]) -> Iterator[File]:
    """The files themselves, and every `.json` file below the folders, in order."""
    for path in paths:
        if not Path(path).is_dir():
            yield File(path, named=True)
            continue
        closed: list[OSError] = []
        for here, folders, names in os.walk(path, onerror=closed.append):
            folders.sort()
            for name in sorted(names):
                if name.endswith(".json"):
                    yield File(os.path.join(here, name), named=False)  # noqa: PTH118 - keeps `./`
        # A folder that may not be read is no empty one: as a file, it is told as unreadable.
        yield from (File(each.filename, named=True) for each in closed)


def place(schema: str) -> tuple[str, str]:
    """A schema's file as the folder it is in, for what it refers to, and its name there."""
    file = Path(schema)
    return str(file.parent), naming.file_name(file.name) or file.name


def document(path: str) -> Any:
    """What a file holds.

    Raises:
        Unreadable: it cannot be read, or is no JSON.
    """
    try:
        content = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf")
    except FileNotFoundError:
        raise Unreadable(
            "there is no such file", {"reason": "io_error", "detail": "file_not_found"}
        ) from None
    except (OSError, ValueError):  # ValueError: a path with a NUL in it
        raise Unreadable(
            "it cannot be read", {"reason": "io_error", "detail": "read_failed"}
        ) from None
    try:
        return decode(content)
    except NotJson as error:
        detail = _where(content, error)
        raise Unreadable(_worded(detail), {"reason": "parse_error", "detail": detail}) from None


def _where(content: bytes, error: NotJson) -> str:
    """Where a text stops being JSON: by line and column, unless only our reader minds."""
    try:
        json.loads(content)
    except json.JSONDecodeError as seen:
        return f"json_decode_error: line {seen.lineno} column {seen.colno}"
    except UnicodeDecodeError:
        return "not_utf8"
    except RecursionError:
        return "nested_too_deeply"
    return f"json_decode_error: {error}"  # NaN, half of a surrogate pair


def _worded(detail: str) -> str:
    """The same for people."""
    _, _, place = detail.partition(": ")
    named = {"not_utf8": "it is not UTF-8", "nested_too_deeply": "it is nested too deeply"}
    return named.get(detail, f"it is no JSON ({place})" if place else "it is no JSON")


def check(judge: Judge, file: File, schema: str | None, *, surely: bool = False) -> Check:
    """Judge one file, which may be surely an asset, whatever it is called."""
    try:
        asset = document(file.path)
    except Unreadable as error:
        return Check(file.path, None, error.payload, error.reason)
    infer = naming.assumed if surely else naming.inferred
    name = schema or infer(asset, Path(file.path).as_posix(), judge.known)
    if schema is None and not file.named and _is_no_asset(judge, file.path, asset, name):
        return Check(file.path, None)
    return Check(file.path, name, judge.verdict(asset, name))


def _is_no_asset(judge: Judge, path: str, asset: Any, name: str) -> bool:
    """Below a folder, a schema is none, and neither is what nothing says to be one."""
    if path.endswith(naming.SUFFIXES[0]):
        return True
    return naming.marked(asset) is None and judge.refusal(name) is not None


def exit_code(checks: Sequence[Check]) -> int:
    """0 all valid, 1 something invalid or nothing to judge, 2 something unreadable."""
    states = {each.state for each in checks}
    if "unreadable" in states:
        return 2
    return int("invalid" in states or "valid" not in states)


def report(checks: Sequence[Check], judge: Judge) -> Iterator[str]:
    """What a person reads: each file that is not valid, and the sum of it."""
    for each in checks:
        if each.state in {"invalid", "unreadable"}:
            refusal = each.reason or (each.schema and _refusal(judge, each.schema))
            against = f" ({each.schema})" if each.schema and not refusal else ""
            yield click.style(each.path, fg="red", bold=True) + against
            errors = each.payload.get("errors", ())
            yield columns(
                [(refusal,)] if refusal else [(e["path"] or "(root)", e["msg"]) for e in errors]
            )
            yield ""
    yield _sum(checks)
    unknown = any(_UNKNOWN in each.payload.get("errors", ()) for each in checks)
    if unknown or {each.state for each in checks} == {"no schema"}:
        known = ", ".join(judge.names) or "none; --schemas DIR says where they are"
        yield f"--schema NAME says which schema to use. There are: {known}."


def _refusal(judge: Judge, schema: str) -> str:
    """Why nothing can be checked against a schema; nothing when it can."""
    if judge.refusal(schema) is None:
        return ""
    if (reason := judge.broken.get(naming.canonical(schema))) is not None:
        return f"the schema {schema!r} cannot be used: {reason}"
    return f"there is no schema {schema!r}"


def _sum(checks: Sequence[Check]) -> str:
    counts = dict.fromkeys(("valid", "invalid", "unreadable", "no schema"), 0)
    for each in checks:
        counts[each.state] += 1
    total = len(checks)
    counts["without a schema"] = counts.pop("no schema")
    parts = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    return f"{counted(total, 'file')}: {parts or 'there is no .json file to check'}"


def as_json(checks: Sequence[Check]) -> dict[str, Any]:
    """The same for scripts: a verdict for every file."""
    results = [
        {"path": each.path, "schema": each.schema, **(each.payload or {"skipped": True})}
        for each in checks
    ]
    return {"ok": exit_code(checks) == 0, "results": results}
