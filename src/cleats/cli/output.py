"""Output of the commands: JSON, and columns that fit the terminal.

Nothing but click is imported, because `cleats doctor` has to work when other libraries are missing.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import TextWrapper, wrap
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

if TYPE_CHECKING:
    from cleats.runtime.progress import ProgressReport
    from cleats.toolsets.code.index.progress import BuildProgress

AnswerT = TypeVar("AnswerT")

INTERRUPTED_EXIT_CODE = 130
"""The exit code that a shell expects of a program ended by Ctrl-C."""

_JSON_META_KEY = "cleats.json-option"

MIN_LINE_COLUMNS, DEFAULT_LINE_COLUMNS, MAX_LINE_COLUMNS = 60, 100, 120
"""The columns of a line: the minimum for aligned text, the default for a pipe, and the maximum for readable text."""

COLUMN_GAP = "  "


def echo_json(value: object) -> None:
    """Print a value as indented JSON, in UTF-8 regardless of the locale.

    A path that is not UTF-8 has a lone surrogate for each invalid byte; JSON can only escape it, and Python's escape is
    the same.
    """
    click.echo(json.dumps(value, indent=2, ensure_ascii=False).encode(errors="backslashreplace"))


class UnusableInput(click.ClickException):
    """Raised when settings, a file or a folder prevent a command from doing its work."""

    exit_code = click.UsageError.exit_code


def keep_in_meta(key: str) -> dict[str, Any]:
    """Return the settings of an option whose value goes to the context instead of the command."""
    return {"expose_value": False, "callback": lambda ctx, _option, value: ctx.meta.__setitem__(key, value)}


json_option = click.option("--json", is_flag=True, help="Print JSON.", **keep_in_meta(_JSON_META_KEY))
"""The option that makes `is_json_requested` true."""


def is_json_requested() -> bool:
    """Return whether the running command has the option --json."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json") or context.meta.get(_JSON_META_KEY))


def print_answer(answer: AnswerT, render: Callable[[AnswerT], str | Iterable[str]]) -> None:
    """Print an answer: as JSON with --json, otherwise as the text or the lines that `render` makes."""
    if is_json_requested():
        echo_json(answer)
        return
    text = render(answer)
    click.echo(text if isinstance(text, str) else "\n".join(text))


def choose_color(environ: Mapping[str, str]) -> bool | None:
    """Return whether the environment asks for colour or forbids it; None if the terminal decides."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in {"", "0", "false"}:
        return True
    return False if environ.get("TERM") == "dumb" else None


def _set_color(ctx: click.Context, _option: click.Parameter, value: str) -> None:
    if value != "auto":
        ctx.color = value == "always"


def terminal_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --color and --no-pager to a command that prints with `print_page`."""
    choice: Any = {"type": click.Choice(["auto", "always", "never"]), "default": "auto"}
    color_option = click.option(
        "--color", **choice, expose_value=False, callback=_set_color, help="When to use colour. [default: auto]"
    )
    pager_option = click.option("--no-pager", is_flag=True, help=_PAGER_HELP, **keep_in_meta(_PAGER_META_KEY))
    return color_option(pager_option(command))


_PAGER_HELP = "Print long answers without a pager. [default pager: PAGER, or less]"
_PAGER_META_KEY = "cleats.no-pager"


def print_page(text: str, notes: Sequence[str] = ()) -> None:
    """Print a text after its notes; if it is longer than the terminal, with a pager that begins at its top.

    Notes go to stderr, unless a pager would hide them.
    """
    context = click.get_current_context()
    page = "\n".join([*notes, text])
    is_long = page.count("\n") + 2 > shutil.get_terminal_size().lines
    has_pager = not context.meta.get(_PAGER_META_KEY) and os.environ.get("PAGER", "less") not in {"", "cat"}
    if is_long and has_pager and sys.stdout.isatty() and sys.stdin.isatty():
        os.environ.setdefault("LESS", "-FRX")  # as git does: colours, and the text stays on the screen
        click.echo_via_pager(page + "\n", color=context.color)
        return
    for note in notes:
        click.echo(note, err=True)
    if text:
        click.echo(text)


def escape_controls(text: str) -> str:
    """Return a text on one line, with control characters escaped as in source code."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def format_count(count: int, singular: str, plural: str = "") -> str:
    """Format a number of things with a singular or plural noun: `1 file`, `2 files`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def limit_to_terminal(columns: int) -> int | None:
    """Return the given number of columns if stdout is a terminal, otherwise None for no limit."""
    return columns if sys.stdout.isatty() else None


def line_width() -> int:
    """Return the length of a line here."""
    return min(max(shutil.get_terminal_size((DEFAULT_LINE_COLUMNS, 24)).columns, MIN_LINE_COLUMNS), MAX_LINE_COLUMNS)


def format_columns(rows: Sequence[Sequence[str]], *, indent: str = COLUMN_GAP, cut: bool = False) -> str:
    """Format rows with aligned cells; the last, which cannot be styled, is wrapped, or cut with `cut`."""
    widths = [max(map(_visible_length, column)) for column in zip(*(row[:-1] for row in rows), strict=True)]
    last_start = len(indent) + sum(widths) + len(COLUMN_GAP) * len(widths)
    last_width = max(line_width() - last_start, MIN_LINE_COLUMNS // 3)
    lines: list[str] = []
    for *cells, last in rows:
        aligned = [cell + " " * (width - _visible_length(cell)) for cell, width in zip(cells, widths, strict=True)]
        first, *rest = [clip_text(last, last_width)] if cut else _wrap_cell(last, last_width)
        lines.append((indent + COLUMN_GAP.join([*aligned, first])).rstrip())
        lines += [" " * last_start + continuation for continuation in rest]
    return "\n".join(lines)


def shorten_home(path: Path) -> str:
    """Return a path as text, with `~` for the home folder."""
    home = os.environ.get("HOME", "")
    if not home or not path.is_relative_to(home):
        return str(path)
    inner_path = path.relative_to(home).as_posix()
    return "~" if inner_path == "." else f"~/{inner_path}"


def style_heading(text: str) -> str:
    """Style the line above a block."""
    return click.style(text, bold=True)


def format_paragraphs(text: str, *, indent: str = COLUMN_GAP) -> str:
    """Wrap prose to the terminal; indented lines and lists stay as they are."""
    lines: list[str] = []
    for line in text.strip().splitlines():
        if not line.strip() or line.startswith((" ", "- ", "* ")):
            lines.append((indent + line).rstrip())
        else:
            lines += wrap(line, line_width(), initial_indent=indent, subsequent_indent=indent)
    return "\n".join(lines)


def clip_text(text: str, max_length: int | None) -> str:
    """Return a text on one line of at most this length, with a mark where it was cut."""
    line = " ".join(text.split())
    return line if max_length is None or len(line) <= max_length else line[: max_length - 1].rstrip() + "…"


def format_duration(seconds: float | None) -> str:
    """Format seconds for people: `10 s`, `20 min`, `2 h`."""
    if seconds is None:
        return "none"
    for unit, unit_seconds in (("h", 3600), ("min", 60)):
        if seconds >= unit_seconds and not seconds % unit_seconds:
            return f"{seconds / unit_seconds:g} {unit}"
    return f"{seconds:g} s"


def format_bytes(byte_count: int) -> str:
    """Format a number of bytes for people."""
    value = float(byte_count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _wrap_cell(text: str, max_length: int) -> list[str]:
    # A path or a command in two pieces cannot be copied; better a line that is too long.
    wrapper = TextWrapper(max_length, break_long_words=False, break_on_hyphens=False)
    return [part for line in text.splitlines() for part in wrapper.wrap(line)] or [""]


def _visible_length(cell: str) -> int:
    return len(click.unstyle(cell))


class ProgressPrinter:
    """Progress on stderr: one changing line in a terminal, a line per report or none elsewhere."""

    def __init__(self, *, outside_terminal: bool = True, quiet: bool = False) -> None:
        self._stream = sys.stderr
        self._is_terminal = self._stream.isatty()
        self._is_silent = quiet or not (self._is_terminal or outside_terminal)
        self._has_output = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.clear()

    async def show(self, report: "ProgressReport") -> None:
        """Print a report with its phase and, if the total is known, its percentage."""
        phase = "" if report.phase == "progress" else f"{report.phase}: "
        percentage = f" ({report.number / report.total:.0%})" if report.total else ""
        self.print_line(phase + report.message + percentage)

    def show_build(self, progress: "BuildProgress") -> None:
        """Draw a bar if the total is known, and the message."""
        fraction = progress.done / progress.total if progress.total else 0.0
        filled = round(20 * fraction)
        bar = f"[{'#' * filled}{'.' * (20 - filled)}] {fraction:4.0%} " if progress.total else ""
        self.print_line(bar + progress.message)

    def print_line(self, text: str) -> None:
        """Print a text to the progress stream."""
        if self._is_silent:
            return
        line = "".join(character if character.isprintable() else " " for character in clip_text(text, line_width() - 1))
        self.clear()
        self._stream.write(line if self._is_terminal else f"{line}\n")
        self._stream.flush()
        self._has_output = True

    def clear(self) -> None:
        """Erase the progress line in a terminal."""
        if self._is_terminal and self._has_output:
            self._stream.write("\r" + " " * (line_width() - 1) + "\r")
            self._stream.flush()
