"""`cleats doctor`: the findings of a checkup, for a person or for a program."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict

import click

from cleats.cli.checkup import DEFAULT, Findings, Folder, Library, Value, examine
from cleats.cli.printing import columns, echo_json, heading, size


@click.command()
@click.option("--all", "whole", is_flag=True, help="Show every library and every setting.")
@click.option("--json", "as_json", is_flag=True, help="Print all findings as JSON.")
def doctor(*, whole: bool, as_json: bool) -> None:
    """Say what is installed, what is missing, and how to get it.

    Nothing is changed and nothing is sent anywhere. Optional capabilities may be missing; each
    says what it is good for.

    Exits 0 when all that Cleats needs is there, 1 when something has to be put right.

    \b
    Examples:
      cleats doctor
      cleats doctor --all
      cleats doctor --json | jq .problems
    """  # noqa: D301 - click reads the backspace
    findings = examine(os.environ)
    if as_json:
        echo_json(asdict(findings))
    else:
        click.echo("\n\n".join(_blocks(findings, whole=whole)))
    sys.exit(0 if findings.ok else 1)


def _blocks(findings: Findings, *, whole: bool) -> Iterator[str]:
    for title, rows in _tables(findings, whole=whole).items():
        if rows:
            yield heading(title) + "\n" + columns(rows)
    if findings.notes:
        yield "\n".join(findings.notes)
    for problem in findings.problems:
        yield f"{_bad('Problem:')} {problem.what}\n{problem.remedy}"
    if findings.ok:
        yield _good("Ready.")


def _tables(findings: Findings, *, whole: bool) -> dict[str, list[tuple[str, ...]]]:
    return {
        "Versions": list(findings.versions.items()),
        "Libraries": _libraries(findings.libraries, whole=whole),
        "Toolsets": [
            (
                name,
                _bad("cannot start") if count is None else _counted(count),
                f"from {findings.packages[name]}" if name in findings.packages else "",
            )
            for name, count in findings.toolsets.items()
        ],
        "Settings": _settings(findings.settings, whole=whole),
        "Files": [("read" if there else "none", path) for path, there in findings.files.items()],
        "Folders": [_row(folder) for folder in findings.folders],
        "Capabilities": [
            (f"{each.group}.{each.name}", _good("yes"), each.purpose)
            if each.present
            else (f"{each.group}.{each.name}", "no", f"{each.purpose}\n{each.remedy}")
            for each in findings.capabilities
        ],
    }


def _libraries(found: list[Library], *, whole: bool) -> list[tuple[str, ...]]:
    shown = [each for each in found if whole or each.version is None]
    rows: list[tuple[str, ...]]
    rows = [(each.name, each.version or _bad("missing"), each.wanted) for each in shown]
    if hidden := len(found) - len(shown):
        rows.append((f"{hidden} installed", "", "(--all shows them)"))
    return rows


def _settings(values: list[Value], *, whole: bool) -> list[tuple[str, ...]]:
    shown = [value for value in values if whole or value.source != DEFAULT]
    rows: list[tuple[str, ...]]
    rows = [(value.name, _shown(value.value), value.source) for value in shown]
    if hidden := len(values) - len(shown):
        rows.append((f"{hidden} others", DEFAULT, "(--all shows them)"))
    return rows


def _row(folder: Folder) -> tuple[str, ...]:
    state = _good("writable") if folder.writable else _bad("not writable")
    made = "" if folder.exists else ", not made yet"
    return folder.name, state, f"{folder.path} ({size(folder.free)} free{made})"


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={seconds:g}" for name, seconds in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, float):
        return f"{value:g} s"
    return str(value) or "-"


def _counted(tools: int) -> str:
    return f"{tools} tool" if tools == 1 else f"{tools} tools"


def _good(text: str) -> str:
    return click.style(text, fg="green")


def _bad(text: str) -> str:
    return click.style(text, fg="red", bold=True)
