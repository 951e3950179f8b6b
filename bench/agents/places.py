"""The declarations that the fix of a task changed, and whether an answer names one of them."""

import re
from collections.abc import Mapping
from pathlib import Path

from bench.agents.tasks import LocateTask
from cleats.toolsets.code.explore.declarations import DeclarationReader, get_last_name

_reader = DeclarationReader()


def list_changed_declarations(task: LocateTask, checkout: Path) -> Mapping[str, frozenset[str]]:
    """Return the last names of the declarations around the changed lines of each file, without the unnamed ones."""
    changed: dict[str, frozenset[str]] = {}
    for path, ranges in task.lines.items():
        file = _reader.read_file(checkout, path)
        around = (
            [file.find_enclosing(line) for first, last in ranges for line in range(first, last + 1)] if file else []
        )
        names = frozenset(get_last_name(chunk.name).lower() for chunk in around if chunk is not None)
        if names:
            changed[path] = names
    return changed


def find_declaration_name(checkout: Path, path: str, line: int) -> str:
    """Return the last name of the declaration around a line; empty where there is none."""
    file = _reader.read_file(checkout, path)
    chunk = file.find_enclosing(line) if file else None
    return get_last_name(chunk.name).lower() if chunk else ""


def split_place(place: str) -> tuple[str, str]:
    """Return the file and the last name of the declaration of a place such as `src/app.py:Session.close()`."""
    path, _, name = place.removeprefix("./").partition(":")
    words = re.findall(r"[\w$~?!]+", name.split("(")[0])
    return path, words[-1].lower() if words else ""
