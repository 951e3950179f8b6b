"""What the commands print: JSON, and columns that fit the terminal.

Nothing but click is imported: `cleats doctor` has to work where other libraries are missing.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from textwrap import TextWrapper, wrap

import click

NARROWEST, USUAL, WIDEST = 60, 100, 120
"""Columns of text: below the first nothing aligns, a pipe gets the second, and lines longer than
the last are hard to read."""

GAP = "  "


def echo_json(value: object) -> None:
    """Print a value as indented JSON, in UTF-8 whatever the locale says.

    A path that is not UTF-8 has half of a surrogate pair for each such byte; JSON can only escape
    it, and Python's escape is the same.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo(text.encode(errors="backslashreplace"))


def asked_for_json() -> bool:
    """Whether the running command was told to print JSON."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))


def escaped(text: str) -> str:
    """A text on one line, with its control characters as they are written in code."""
    return "".join(each if each.isprintable() else _written(each) for each in text)


def _written(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()


def counted(count: int, one: str, several: str = "") -> str:
    """A number of things, as people say it: `1 file`, `2 files`."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def room(columns: int) -> int | None:
    """The columns that a line may have; any number where no terminal shows it."""
    return columns if sys.stdout.isatty() else None


def width() -> int:
    """How long a line may be here."""
    return min(max(shutil.get_terminal_size((USUAL, 24)).columns, NARROWEST), WIDEST)


def columns(rows: Sequence[Sequence[str]], *, indent: str = GAP, cut: bool = False) -> str:
    """Rows with their cells aligned; the last cell is wrapped to the line, or cut at its end.

    Cells may be styled, except for the last.
    """
    fixed = [row[:-1] for row in rows]
    widths = [max(map(_length, column)) for column in zip(*fixed, strict=True)]
    lead = len(indent) + sum(widths) + len(GAP) * len(widths)
    room = max(width() - lead, NARROWEST // 3)
    lines: list[str] = []
    for cells, last in zip(fixed, (row[-1] for row in rows), strict=True):
        aligned = [cell + " " * (w - _length(cell)) for cell, w in zip(cells, widths, strict=True)]
        first, *rest = [clip(last, room)] if cut else _wrapped(last, room)
        lines.append((indent + GAP.join([*aligned, first])).rstrip())
        lines += [" " * lead + more for more in rest]
    return "\n".join(lines)


def heading(text: str) -> str:
    """The line above a block."""
    return click.style(text, bold=True)


def paragraphs(text: str, *, indent: str = GAP) -> str:
    """Prose in the lines of this terminal; indented lines and lists stay as they are."""
    return "\n".join(_filled(text, indent))


def clip(text: str, room: int | None) -> str:
    """A text on one line of this length, with a mark where it was cut."""
    line = " ".join(text.split())
    return line if room is None or len(line) <= room else line[: room - 1].rstrip() + "…"


def duration(seconds: float | None) -> str:
    """Seconds as people say them: `10 s`, `20 min`, `2 h`."""
    if seconds is None:
        return "none"
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size and not seconds % size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def size(amount: int) -> str:
    """Bytes as people say them."""
    value = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _wrapped(text: str, room: int) -> list[str]:
    # A path or a command in two pieces cannot be copied; better a line that is too long.
    whole = TextWrapper(room, break_long_words=False, break_on_hyphens=False)
    return [part for line in text.splitlines() for part in whole.wrap(line)] or [""]


def _filled(text: str, indent: str) -> Iterator[str]:
    for line in text.strip().splitlines():
        if not line.strip() or line.startswith((" ", "- ", "* ")):
            yield (indent + line).rstrip()
        else:
            yield from wrap(line, width(), initial_indent=indent, subsequent_indent=indent)


def _length(cell: str) -> int:
    return len(click.unstyle(cell))
