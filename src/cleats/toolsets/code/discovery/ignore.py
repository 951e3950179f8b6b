"""Ignore files with git's semantics: patterns, the files they stand in, and the tree of those.

A pattern is matched against a path itself, never against what lies above it: whoever walks a tree
asks about each folder before its contents and does not enter one that is excluded, which is also
why nothing below such a folder can be brought back. Libraries that match whole paths instead
differ from git in just these cases.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r\\x0b\\x0c",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Pattern(NamedTuple):
    """One line of an ignore file."""

    regex: re.Pattern[str]
    negated: bool
    folders_only: bool
    anchored: bool
    """Matched against the whole path below its ignore file, not against the last name."""


class Rules:
    """One ignore file."""

    def __init__(self, text: str) -> None:
        lines = text.removeprefix("\ufeff").split("\n")
        self.patterns = [found for line in lines if (found := parse(line))]
        # Most paths match nothing: one look at all patterns together settles those.
        self._names = _any(found for found in self.patterns if not found.anchored)
        self._paths = _any(found for found in self.patterns if found.anchored)

    def verdict(self, path: str, name: str, *, folder: bool) -> bool | None:
        """Whether a path below this file is excluded; the last pattern that fits decides."""
        path, name = _as_bytes(path), _as_bytes(name)
        named = self._names is not None and self._names.fullmatch(name)
        if not named and not (self._paths is not None and self._paths.fullmatch(path)):
            return None
        for pattern in reversed(self.patterns):
            if pattern.folders_only and not folder:
                continue
            if pattern.regex.fullmatch(path if pattern.anchored else name):
                return not pattern.negated
        return None


class IgnoreTree:
    """Ignore files of one name, each ruling the folder it lies in. The nearest decides."""

    def __init__(self, base: Iterable[Rules] = ()) -> None:
        self._base = tuple(base)
        """Rules for the whole tree, the strongest first; every file in it is stronger."""
        self._rules: dict[str, Rules] = {}
        self._folders: dict[str, bool] = {"": False}

    def add(self, folder: str, text: str) -> None:
        """Take an ignore file into account; `folder` is relative, empty for the root."""
        rules = Rules(text)
        if rules.patterns:
            self._rules[folder] = rules

    def excludes(self, path: str, *, folder: bool) -> bool:
        """Whether a path is excluded by itself; the folders above it are known not to be."""
        if not self._rules and not self._base:
            return False
        name = path.rsplit("/", 1)[-1]
        cut = len(path)
        while cut > 0:
            cut = max(path.rfind("/", 0, cut), 0)
            if (rules := self._rules.get(path[:cut])) is not None:
                below = path[cut + 1 :] if cut else path
                if (verdict := rules.verdict(below, name, folder=folder)) is not None:
                    return verdict
        for rules in self._base:
            if (verdict := rules.verdict(path, name, folder=folder)) is not None:
                return verdict
        return False

    def excludes_deeply(self, path: str) -> bool:
        """Whether a file, or any folder above it, is excluded."""
        if not self._rules and not self._base:
            return False
        return self._closed(path.rpartition("/")[0]) or self.excludes(path, folder=False)

    def _closed(self, folder: str) -> bool:
        above: list[str] = []
        while (known := self._folders.get(folder)) is None:
            above.append(folder)
            folder = folder.rpartition("/")[0]
        for below in reversed(above):
            known = known or self.excludes(below, folder=True)
            self._folders[below] = known
        return known


def _as_bytes(text: str) -> str:
    """One character for each byte: git compares bytes, so `?` is not all of `é`."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def parse(line: str) -> Pattern | None:
    """Read a line of an ignore file; none when it is blank, a comment or not a pattern."""
    text = _as_bytes(_without_trailing_blanks(line.removesuffix("\r")))
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    folders_only = text.endswith("/")
    text = text[: len(text) - folders_only]
    anchored = "/" in text
    text = text.removeprefix("/")
    try:
        regex = re.compile(_translated(text), re.DOTALL)
    except (ValueError, KeyError, re.error):
        return None  # git takes it too for a pattern that nothing matches
    return Pattern(regex, negated, folders_only, anchored) if text else None


def _without_trailing_blanks(line: str) -> str:
    kept = line.rstrip(" ")
    slashes = len(kept) - len(kept.rstrip("\\"))
    return line[: len(kept) + 1] if slashes % 2 and len(kept) < len(line) else kept


_STAR = "[^/]*"
_FOLDERS = "(?:[^/]+/)*?"
"""What `**/` stands for."""


def _translated(text: str) -> str:
    """Git's wildcards as a regular expression. Raises ValueError for what is never matched.

    What stands between two wildcards may as well be matched where it first fits, so that is never
    tried again: else a few stars would take longer than anybody can wait.
    """
    out: list[str] = []
    block: list[str] = []
    for piece in _tokens(text):
        if piece == _FOLDERS:
            out.append(_once(out, block))
            block = []
        block.append(piece)
    return "".join(out) + _starred(block)


def _once(before: list[str], block: list[str]) -> str:
    return f"(?>{_starred(block)})" if before else _starred(block)


def _starred(tokens: list[str]) -> str:
    """Join the tokens between two `**/`; within a name only the last star may give way."""
    out: list[str] = []
    since: int | None = None
    for piece in tokens:
        if piece == _STAR and since is not None:
            out[since] = "(?>[^/]*?"
            out.append(")")
        if piece == _STAR:
            since = len(out)
        elif piece == "/":
            since = None
        out.append(piece)
    return "".join(out)


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        char = text[at]
        if char == "*":
            piece, at = _stars(text, at)
        elif char == "[":
            piece, at = _bracket(text, at)
        elif char == "?":
            piece, at = "[^/]", at + 1
        elif char == "\\":
            if at + 1 == len(text):
                raise ValueError
            piece, at = re.escape(text[at + 1]), at + 2
        else:
            piece, at = re.escape(char), at + 1
        yield piece


def _stars(text: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(text) and text[end] == "*":
        end += 1
    opens = at == 0 or text[at - 1] == "/"
    if end - at > 1 and opens and "/" in text:
        if end == len(text):
            return ".+", end
        if text[end] == "/":
            return _FOLDERS, end + 1
    return _STAR, end


def _bracket(text: str, at: int) -> tuple[str, int]:
    end = at + 1
    negated = end < len(text) and text[end] in "!^"
    end += negated
    pieces: list[str] = []
    first = True
    while True:
        if end >= len(text):
            raise ValueError
        char = text[end]
        if char == "]" and not first:
            break
        first = False
        if char == "[" and text.startswith("[:", end) and (close := text.find(":]", end)) > 0:
            pieces.append(_CLASSES[text[end + 2 : close]])
            end = close + 2
            continue
        low, end = _member(text, end)
        if end + 1 < len(text) and text[end] == "-" and text[end + 1] != "]":
            high, end = _member(text, end + 1)
            if low <= high:
                pieces.append(f"{re.escape(low)}-{re.escape(high)}")
            continue
        pieces.append(re.escape(low))
    inside = "".join(pieces)
    if not inside:
        return ("[^/]" if negated else "(?!)"), end + 1
    return (f"[^/{inside}]" if negated else f"(?!/)[{inside}]"), end + 1


def _member(text: str, at: int) -> tuple[str, int]:
    if text[at] == "\\":
        at += 1
    if at >= len(text):
        raise ValueError
    return text[at], at + 1


def _any(patterns: Iterable[Pattern]) -> re.Pattern[str] | None:
    joined = "|".join(f"(?:{pattern.regex.pattern})" for pattern in patterns)
    return re.compile(joined, re.DOTALL) if joined else None
