"""The `cleats doctor` command: the report of a checkup, for a person or for a program."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict

import click

from cleats.cli.doctor_checks import (
    DEFAULT_SOURCE,
    CheckedFolder,
    DoctorReport,
    RequiredLibrary,
    SettingValue,
    examine_machine,
)
from cleats.cli.output import echo_json, format_bytes, format_columns, style_heading


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
    findings = examine_machine(os.environ)
    if as_json:
        echo_json(asdict(findings))
    else:
        click.echo("\n\n".join(_render_blocks(findings, show_all=whole)))
    sys.exit(0 if findings.ok else 1)


def _render_blocks(findings: DoctorReport, *, show_all: bool) -> Iterator[str]:
    for title, rows in _build_tables(findings, show_all=show_all).items():
        if rows:
            yield style_heading(title) + "\n" + format_columns(rows)
    if findings.notes:
        yield "\n".join(findings.notes)
    for problem in findings.problems:
        yield f"{_style_bad('Problem:')} {problem.what}\n{problem.remedy}"
    if findings.ok:
        yield _style_good("Ready.")


def _build_tables(findings: DoctorReport, *, show_all: bool) -> dict[str, list[tuple[str, ...]]]:
    return {
        "Versions": list(findings.versions.items()),
        "Libraries": _library_rows(findings.libraries, show_all=show_all),
        "Toolsets": [
            (
                name,
                _style_bad("cannot start") if count is None else _format_tool_count(count),
                f"from {findings.packages[name]}" if name in findings.packages else "",
            )
            for name, count in findings.toolsets.items()
        ],
        "Settings": _setting_rows(findings.settings, show_all=show_all),
        "Files": [("read" if exists else "none", path) for path, exists in findings.files.items()],
        "Folders": [_folder_row(folder) for folder in findings.folders],
        "Capabilities": [
            (f"{capability.group}.{capability.name}", _style_good("yes"), capability.purpose)
            if capability.present
            else (f"{capability.group}.{capability.name}", "no", f"{capability.purpose}\n{capability.remedy}")
            for capability in findings.capabilities
        ],
    }


def _library_rows(libraries: list[RequiredLibrary], *, show_all: bool) -> list[tuple[str, ...]]:
    shown_libraries = [library for library in libraries if show_all or library.version is None]
    rows: list[tuple[str, ...]]
    rows = [(library.name, library.version or _style_bad("missing"), library.wanted) for library in shown_libraries]
    if hidden := len(libraries) - len(shown_libraries):
        rows.append((f"{hidden} installed", "", "(--all shows them)"))
    return rows


def _setting_rows(values: list[SettingValue], *, show_all: bool) -> list[tuple[str, ...]]:
    shown_values = [value for value in values if show_all or value.source != DEFAULT_SOURCE]
    rows: list[tuple[str, ...]]
    rows = [(value.name, _format_value(value.value), value.source) for value in shown_values]
    if hidden := len(values) - len(shown_values):
        rows.append((f"{hidden} others", DEFAULT_SOURCE, "(--all shows them)"))
    return rows


def _folder_row(folder: CheckedFolder) -> tuple[str, ...]:
    state = _style_good("writable") if folder.writable else _style_bad("not writable")
    creation_note = "" if folder.exists else ", not made yet"
    return folder.name, state, f"{folder.path} ({format_bytes(folder.free)} free{creation_note})"


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={seconds:g}" for name, seconds in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, float):
        return f"{value:g} s"
    return str(value) or "-"


def _format_tool_count(tools: int) -> str:
    return f"{tools} tool" if tools == 1 else f"{tools} tools"


def _style_good(text: str) -> str:
    return click.style(text, fg="green")


def _style_bad(text: str) -> str:
    return click.style(text, fg="red", bold=True)
