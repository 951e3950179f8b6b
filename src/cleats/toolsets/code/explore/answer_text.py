"""Plain-text answers within a token budget."""

from collections.abc import Iterable, Sequence
from typing import Final

DEFAULT_TOKENS: Final = 2000
"""Tokens of an answer, unless the caller asks for another number."""

MIN_TOKENS, MAX_TOKENS = 200, 20_000
"""The smallest budget that fits one useful hit, and one that every known client accepts."""

CHARS_PER_TOKEN: Final = 3.2
"""Characters of code in a token, rounded down: measured with o200k, source code has 3.3 to 3.9."""

TOKENS_PER_LINE, MIN_LINE_COUNT = 33, 10
"""Tokens of the budget for which an answer may have one line, about twice what a line costs; and the fewest lines."""

MAX_LINE_CHARS: Final = 160
"""Characters of a source line that are shown; a longer line is data or minified."""

TOKENS_PROPERTY: Final = {
    "type": "integer",
    "minimum": MIN_TOKENS,
    "maximum": MAX_TOKENS,
    "default": DEFAULT_TOKENS,
    "description": "Token budget of the answer.",
}


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text, never too low for code."""
    return int(len(text) / CHARS_PER_TOKEN) + 1


def limit_line_count(max_tokens: int) -> int:
    """Return how many lines a list or a declaration may take in an answer: 60 unless another budget is set.

    Most readers need the beginning to decide, and the budget itself is spent only by long lines.
    """
    return max(MIN_LINE_COUNT, max_tokens // TOKENS_PER_LINE)


def shorten_line(text: str, max_chars: int = MAX_LINE_CHARS) -> str:
    """Return a line without its trailing space, cut where it is too long."""
    line = text.rstrip()
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def number_lines(lines: Sequence[str], first: int) -> list[str]:
    """Return lines with their numbers, the way `read_lines` and hits show them."""
    return [f"{number}: {shorten_line(line)}" for number, line in enumerate(lines, first)]


class AnswerText:
    """Collects the lines of an answer until its budget is spent."""

    def __init__(self, max_tokens: int, reserved_tokens: int = 60) -> None:
        """Set the budget; `reserved_tokens` are kept for a header and a footer."""
        self._room = int((max_tokens - reserved_tokens) * CHARS_PER_TOKEN)
        self.lines: list[str] = []

    def add_block(self, lines: Iterable[str]) -> bool:
        """Add lines that belong together; return False, and add nothing, if they do not fit."""
        block = list(lines)
        cost = sum(len(line) + 1 for line in block)
        if cost > self._room:
            return False
        self._room -= cost
        self.lines += block
        return True

    def fits(self, lines: Iterable[str]) -> bool:
        return sum(len(line) + 1 for line in lines) <= self._room

    def render(self, header: str = "", footer: str = "") -> str:
        return "\n".join([*([header] if header else []), *self.lines, *([footer] if footer else [])])


def describe_page(shown: int, total: int, offset: int, noun: str) -> str:
    """Describe the part of a list that an answer shows, and how to get the rest."""
    if offset == 0 and shown == total:
        return f"{total:,} {noun}"
    text = f"{noun} {offset + 1}-{offset + shown} of {total:,}" if shown else f"0 of {total:,} {noun}"
    return f"{text}; next: offset={offset + shown}" if offset + shown < total else text
