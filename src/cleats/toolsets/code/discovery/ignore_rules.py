"""Ignore files with git's semantics: patterns, the files that contain them, and the tree of files.

A pattern is matched against a path itself, never against its parents. A walk checks each folder before its contents and
does not enter an excluded one, which is also why nothing below such a folder can be included again. Libraries that
match full paths instead differ from git in exactly these cases.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_CHARACTER_CLASSES = {
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


class IgnorePattern(NamedTuple):
    """One line of an ignore file."""

    regex: re.Pattern[str]
    negated: bool
    folders_only: bool
    anchored: bool
    """True if it is matched against the full path below its ignore file, not against the last name."""


class IgnoreRules:
    """The patterns of one ignore file."""

    def __init__(self, text: str) -> None:
        lines = text.removeprefix("\ufeff").split("\n")
        self.patterns = [pattern for line in lines if (pattern := parse_pattern(line))]
        # Most paths match nothing: one match of all patterns combined rules those out.
        self._name_pattern = _combine_patterns(pattern for pattern in self.patterns if not pattern.anchored)
        self._path_pattern = _combine_patterns(pattern for pattern in self.patterns if pattern.anchored)

    def match_path(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Return whether a path is excluded; None if no pattern matches. The last match decides."""
        path, name = _decode_bytewise(path), _decode_bytewise(name)
        name_matches = self._name_pattern is not None and self._name_pattern.fullmatch(name)
        if not name_matches and not (self._path_pattern is not None and self._path_pattern.fullmatch(path)):
            return None
        for pattern in reversed(self.patterns):
            if pattern.folders_only and not is_folder:
                continue
            if pattern.regex.fullmatch(path if pattern.anchored else name):
                return not pattern.negated
        return None


class IgnoreTree:
    """Ignore files of one name, each of which applies to its folder. The nearest one decides."""

    def __init__(self, base_rules: Iterable[IgnoreRules] = ()) -> None:
        self._base_rules = tuple(base_rules)
        """Rules for the entire tree, the strongest first; every file in the tree is stronger."""
        self._rules_by_folder: dict[str, IgnoreRules] = {}
        self._excluded_folders: dict[str, bool] = {"": False}

    def add(self, folder: str, text: str) -> None:
        """Add an ignore file; `folder` is relative, and empty for the root."""
        rules = IgnoreRules(text)
        if rules.patterns:
            self._rules_by_folder[folder] = rules

    def is_excluded(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path itself is excluded; its parent folders are known not to be."""
        if not self._rules_by_folder and not self._base_rules:
            return False
        name = path.rsplit("/", 1)[-1]
        parent_length = len(path)
        while parent_length > 0:
            parent_length = max(path.rfind("/", 0, parent_length), 0)
            if (rules := self._rules_by_folder.get(path[:parent_length])) is not None:
                below = path[parent_length + 1 :] if parent_length else path
                if (verdict := rules.match_path(below, name, is_folder=is_folder)) is not None:
                    return verdict
        for rules in self._base_rules:
            if (verdict := rules.match_path(path, name, is_folder=is_folder)) is not None:
                return verdict
        return False

    def is_excluded_with_parents(self, path: str) -> bool:
        """Return whether a file, or any folder above it, is excluded."""
        if not self._rules_by_folder and not self._base_rules:
            return False
        return self._is_folder_excluded(path.rpartition("/")[0]) or self.is_excluded(path, is_folder=False)

    def _is_folder_excluded(self, folder: str) -> bool:
        unresolved: list[str] = []
        while (is_excluded_here := self._excluded_folders.get(folder)) is None:
            unresolved.append(folder)
            folder = folder.rpartition("/")[0]
        for subfolder in reversed(unresolved):
            is_excluded_here = is_excluded_here or self.is_excluded(subfolder, is_folder=True)
            self._excluded_folders[subfolder] = is_excluded_here
        return is_excluded_here


def _decode_bytewise(text: str) -> str:
    """Return one character for each byte: git compares bytes, so `?` does not match all of `é`."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def parse_pattern(line: str) -> IgnorePattern | None:
    """Parse a line of an ignore file; return None if it is blank, a comment or not a pattern."""
    text = _decode_bytewise(_strip_trailing_blanks(line.removesuffix("\r")))
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    text = text[is_negated:]
    folders_only = text.endswith("/")
    text = text[: len(text) - folders_only]
    anchored = "/" in text
    text = text.removeprefix("/")
    try:
        regex = re.compile(_translate_pattern(text), re.DOTALL)
    except (ValueError, KeyError, re.error):
        return None  # for git, too, nothing matches such a pattern
    return IgnorePattern(regex, is_negated, folders_only, anchored) if text else None


def _strip_trailing_blanks(line: str) -> str:
    stripped = line.rstrip(" ")
    backslash_count = len(stripped) - len(stripped.rstrip("\\"))
    return line[: len(stripped) + 1] if backslash_count % 2 and len(stripped) < len(line) else stripped


_STAR_REGEX = "[^/]*"
_FOLDERS_REGEX = "(?:[^/]+/)*?"
"""The translation of `**/`."""


def _translate_pattern(text: str) -> str:
    """Translate git's wildcards to a regular expression. Raise ValueError if nothing can match.

    The text between two wildcards may always be matched where it first fits, so there is no
    backtracking: otherwise a few stars could take exponential time.
    """
    pieces: list[str] = []
    block: list[str] = []
    for piece in _tokenize_pattern(text):
        if piece == _FOLDERS_REGEX:
            pieces.append(f"(?>{_join_tokens(block)})" if pieces else _join_tokens(block))
            block = []
        block.append(piece)
    return "".join(pieces) + _join_tokens(block)


def _join_tokens(tokens: list[str]) -> str:
    """Join the tokens between two `**/`; within a name only the last star may backtrack."""
    pieces: list[str] = []
    last_star: int | None = None
    for piece in tokens:
        if piece == _STAR_REGEX and last_star is not None:
            pieces[last_star] = "(?>[^/]*?"
            pieces.append(")")
        if piece == _STAR_REGEX:
            last_star = len(pieces)
        elif piece == "/":
            last_star = None
        pieces.append(piece)
    return "".join(pieces)


def _tokenize_pattern(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        character = text[position]
        if character == "*":
            piece, position = _read_stars(text, position)
        elif character == "[":
            piece, position = _read_bracket(text, position)
        elif character == "?":
            piece, position = "[^/]", position + 1
        elif character == "\\":
            if position + 1 == len(text):
                raise ValueError
            piece, position = re.escape(text[position + 1]), position + 2
        else:
            piece, position = re.escape(character), position + 1
        yield piece


def _read_stars(text: str, start: int) -> tuple[str, int]:
    end = start
    while end < len(text) and text[end] == "*":
        end += 1
    is_segment_start = start == 0 or text[start - 1] == "/"
    if end - start > 1 and is_segment_start and "/" in text:
        if end == len(text):
            return ".+", end
        if text[end] == "/":
            return _FOLDERS_REGEX, end + 1
    return _STAR_REGEX, end


def _read_bracket(text: str, start: int) -> tuple[str, int]:
    end = start + 1
    is_negated = end < len(text) and text[end] in "!^"
    end += is_negated
    pieces: list[str] = []
    is_first = True
    while True:
        if end >= len(text):
            raise ValueError
        character = text[end]
        if character == "]" and not is_first:
            break
        is_first = False
        if character == "[" and text.startswith("[:", end) and (close := text.find(":]", end)) > 0:
            pieces.append(_CHARACTER_CLASSES[text[end + 2 : close]])
            end = close + 2
            continue
        low, end = _read_bracket_member(text, end)
        if end + 1 < len(text) and text[end] == "-" and text[end + 1] != "]":
            high, end = _read_bracket_member(text, end + 1)
            if low <= high:
                pieces.append(f"{re.escape(low)}-{re.escape(high)}")
            continue
        pieces.append(re.escape(low))
    members = "".join(pieces)
    if not members:
        return ("[^/]" if is_negated else "(?!)"), end + 1
    return (f"[^/{members}]" if is_negated else f"(?!/)[{members}]"), end + 1


def _read_bracket_member(text: str, position: int) -> tuple[str, int]:
    if text[position] == "\\":
        position += 1
    if position >= len(text):
        raise ValueError
    return text[position], position + 1


def _combine_patterns(patterns: Iterable[IgnorePattern]) -> re.Pattern[str] | None:
    alternatives = "|".join(f"(?:{pattern.regex.pattern})" for pattern in patterns)
    return re.compile(alternatives, re.DOTALL) if alternatives else None
