"""The edits of a page that fixes share: line by line, outside of code, without a trace of what is removed."""

import re
from collections.abc import Callable, Iterable

from cleats.toolsets.launch.gates.model import FixCase
from cleats.toolsets.launch.gates.site import PageFile
from cleats.toolsets.launch.site import pages


def edit_lines(text: str, edit_line: Callable[[int, str], str | None]) -> str:
    """Edit a text line by line, counted from 1; None removes a line."""
    edited_lines = (edit_line(number, line) for number, line in enumerate(text.split("\n"), start=1))
    return "\n".join(line for line in edited_lines if line is not None)


def edit_prose(case: FixCase, edit_line: Callable[[str], str | None]) -> str:
    """Edit each line of prose, and leave code and front matter alone; None removes a line."""
    prose = list_prose_lines(case.file)
    return edit_lines(case.text, lambda number, line: edit_line(line) if number in prose else line)


def edit_around(protected: re.Pattern[str], line: str, edit_piece: Callable[[str], str]) -> str:
    """Edit the pieces of a line that the pattern does not match."""
    pieces, end = [], 0
    for match in protected.finditer(line):
        pieces += [edit_piece(line[end : match.start()]), match.group()]
        end = match.end()
    return "".join([*pieces, edit_piece(line[end:])])


def remove_lines(text: str, lines: Iterable[int]) -> str:
    """Remove some lines of a text, and the double blank lines that this would leave."""
    removed_lines = set(lines)
    if not removed_lines:
        return text
    remaining_lines: list[str] = []
    after_removal = False
    for number, line in enumerate(text.split("\n"), start=1):
        if number in removed_lines:
            after_removal = True
            continue
        if after_removal and not line.strip() and remaining_lines and not remaining_lines[-1].strip():
            continue
        after_removal = after_removal and not line.strip()
        remaining_lines.append(line)
    return end_with_newline("\n".join(remaining_lines))


def end_with_newline(text: str) -> str:
    """Return the text with exactly one line feed at its end."""
    return text.rstrip("\n") + "\n"


def list_prose_lines(file: PageFile) -> frozenset[int]:
    """Return the line numbers of the body that are neither front matter nor code."""
    return frozenset(number for number, _ in file.prose)


def list_code_lines(file: PageFile) -> frozenset[int]:
    """Return the line numbers of a file that are code, including fences."""
    return frozenset(file.body_line + number - 1 for number in pages.find_code_lines(file.body))
