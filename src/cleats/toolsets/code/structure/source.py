"""The text of a file as lines that know where they lie in its bytes."""

from functools import cached_property
from itertools import accumulate

BLOCK = 60
"""Lines of a block where nothing tells where one thing ends and the next begins."""


class Source:
    """A file that is read as lines. Only a line feed ends a line, as in tree-sitter and git."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data

    @cached_property
    def lines(self) -> list[str]:
        # A line end is never part of a sequence in UTF-8, so both ways of splitting agree.
        return self.data.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins, and one more for the end of the text."""
        return list(accumulate((len(line) + 1 for line in self.data.split(b"\n")), initial=0))

    @property
    def stem(self) -> str:
        """What the file is called without its folders and its extension."""
        name = self.path.rsplit("/", 1)[-1]
        return name.rsplit(".", 1)[0] or name

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The bytes of two lines and all between, without the last line's end."""
        end = self.starts[last + 1] - 1
        return self.starts[first], end

    def trimmed(self, first: int, last: int) -> tuple[int, int] | None:
        """The same lines without blank ones around them; none when all are blank."""
        lines = self.lines
        while first <= last and not lines[first].strip():
            first += 1
        while last >= first and not lines[last].strip():
            last -= 1
        return (first, last) if first <= last else None

    def is_blank(self, line: int) -> bool:
        return not self.lines[line].strip()


def line_count(data: bytes) -> int:
    """Lines of a text; what follows the last line end counts if there is anything."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
