"""Comparison of regular expressions as automata, for those that are regular.

A `pattern` of JSON Schema is an ECMA-262 expression that may match anywhere in a text. It is
translated into the syntax of `interegular`; what has no translation that means exactly the same
(lookarounds, references to groups, anchors inside an alternative) stays undecided.
"""

import re
from collections import deque
from functools import lru_cache
from typing import Any, Final

SPACE_CLASS: Final = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
CLASS_ESCAPES: Final = {"d": "0-9", "w": "A-Za-z0-9_", "s": SPACE_CLASS}
LINE_ENDS: Final = "\n\r\u2028\u2029"
CONTROL_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "v": "\v", "f": "\f", "0": "\0"}
SYNTAX_CHARACTERS: Final = frozenset("^$\\.*+?()[]{}|/-")

MAX_PATTERN_CHARACTERS: Final = 500
MAX_REPETITIONS: Final = 300
"""Automata grow with repetitions: a larger one takes seconds."""

OTHER_CHARACTER: Final = "\u2603"
"""Stands for any character that neither expression mentions."""


class UnsupportedPatternError(ValueError):
    """Raised for an expression that is not regular, or has no exact translation."""


def find_unmatched_text(pattern: str, other: str | None) -> str | None:
    """Return a short text that a pattern matches and the other does not; None if there is none.

    Without another pattern, return a text that the pattern matches.

    Raises:
        UnsupportedPatternError: One of the two cannot be decided.
    """
    automaton = _build_automaton(pattern)
    return _find_shortest_text(automaton if other is None else automaton.difference(_build_automaton(other)))


def find_text(wanted: tuple[str, ...], unwanted: tuple[str, ...], least_characters: int) -> str | None:
    """Return a short text that matches all of some patterns and none of others; None if there is none.

    Raises:
        UnsupportedPatternError: One of the patterns cannot be decided, or the text would be too long.
    """
    if least_characters > MAX_REPETITIONS:
        raise UnsupportedPatternError(str(least_characters))
    automaton = _build_automaton(f"^(?:[^a]|a){{{least_characters},}}" if least_characters else "")
    for pattern in wanted:
        automaton = automaton.intersection(_build_automaton(pattern))
    for pattern in unwanted:
        automaton = automaton.difference(_build_automaton(pattern))
    return _find_shortest_text(automaton)


def _find_shortest_text(automaton: Any) -> str | None:
    """Return the shortest text that an automaton accepts, or None."""
    characters = {
        key: min((part for part in parts if isinstance(part, str)), default=OTHER_CHARACTER)
        for key, parts in automaton.alphabet.by_transition.items()
    }
    texts = {automaton.initial: ""}
    waiting = deque([automaton.initial])
    while waiting:
        state = waiting.popleft()
        if state in automaton.finals:
            return texts[state]
        for key, target in automaton.map.get(state, {}).items():
            if target not in texts:
                texts[target] = texts[state] + characters[key]
                waiting.append(target)
    return None


@lru_cache(maxsize=256)
def _build_automaton(pattern: str) -> Any:
    from interegular import InvalidSyntax, Unsupported, parse_pattern  # noqa: PLC0415 - only for changed patterns

    if len(pattern) > MAX_PATTERN_CHARACTERS or OTHER_CHARACTER in pattern:
        raise UnsupportedPatternError(pattern)
    try:
        automaton: Any = parse_pattern(_Translator(pattern).translate()).to_fsm()
        return automaton.reduce()
    except (InvalidSyntax, Unsupported, RecursionError) as error:
        raise UnsupportedPatternError(pattern) from error


class _Translator:
    """Translates one expression, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._position = 0
        self._depth = 0

    def translate(self) -> str:
        """Return an expression that matches the whole of exactly the texts in which the pattern occurs."""
        alternatives: list[str] = []
        parts: list[str] = []
        starts_free, ends_free = True, True
        while (token := self._read_token()) is not None:
            if token == "|" and self._depth == 0:
                alternatives.append(_wrap(parts, starts_free=starts_free, ends_free=ends_free))
                parts, starts_free, ends_free = [], True, True
            elif token == "^" and not parts and self._depth == 0:
                starts_free = False
            elif token == "$" and self._depth == 0 and self._peek() in {"", "|"}:
                ends_free = False
            elif token in {"^", "$"}:
                raise UnsupportedPatternError(self._pattern)
            else:
                parts.append(token)
        alternatives.append(_wrap(parts, starts_free=starts_free, ends_free=ends_free))
        return "|".join(alternatives)

    def _peek(self) -> str:
        return self._pattern[self._position : self._position + 1]

    def _read_token(self) -> str | None:
        character = self._peek()
        if not character:
            return None
        self._position += 1
        readers = {"\\": self._read_escape, "[": self._read_class, "(": self._open_group, "{": self._read_repetition}
        if character in readers:
            return readers[character]()
        self._depth -= character == ")"
        return f"[^{LINE_ENDS}]" if character == "." else character

    def _open_group(self) -> str:
        self._depth += 1
        match = re.compile(r"\?(?::|<[A-Za-z_]\w*>)").match(self._pattern, self._position)
        if match is not None:
            self._position = match.end()
        elif self._peek() == "?":
            raise UnsupportedPatternError(self._pattern)
        return "(?:"

    def _read_repetition(self) -> str:
        match = re.compile(r"(\d+)(,?)(\d*)\}").match(self._pattern, self._position)
        if match is None or max(int(match[1]), int(match[3] or 0)) > MAX_REPETITIONS:
            raise UnsupportedPatternError(self._pattern)
        self._position = match.end()
        return "{" + match[0]

    def _read_escape(self) -> str:
        name = self._peek()
        if name.lower() in CLASS_ESCAPES:
            self._position += 1
            return f"[{'^' if name.isupper() else ''}{CLASS_ESCAPES[name.lower()]}]"
        return _quote(self._read_escaped_character())

    def _read_escaped_character(self) -> str:
        match = re.compile(r"u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})").match(self._pattern, self._position)
        if match is not None:
            self._position = match.end()
            return chr(int(match[1] or match[2], 16))
        name = self._peek()
        if name not in CONTROL_ESCAPES and name not in SYNTAX_CHARACTERS:
            raise UnsupportedPatternError(self._pattern)
        self._position += 1
        return CONTROL_ESCAPES.get(name, name)

    def _read_class(self) -> str:
        parts = ["[^"] if self._peek() == "^" else ["["]
        self._position += parts[0] == "[^"
        while (character := self._peek()) != "]":
            if not character:
                raise UnsupportedPatternError(self._pattern)
            self._position += 1
            if character == "\\" and self._peek() in CLASS_ESCAPES:
                parts.append(CLASS_ESCAPES[self._peek()])
                self._position += 1
                if self._peek() == "-" and self._pattern[self._position + 1 : self._position + 2] != "]":
                    raise UnsupportedPatternError(self._pattern)
            elif character == "\\":
                parts.append(_quote(self._read_escaped_character()))
            elif character == "-" and (len(parts) == 1 or self._peek() == "]"):
                parts.append("\\-")
            else:
                parts.append(character if character == "-" else _quote(character))
        self._position += 1
        if len(parts) == 1:  # matches nothing, or everything
            raise UnsupportedPatternError(self._pattern)
        return "".join(parts) + "]"


def _quote(character: str) -> str:
    return f"\\{character}" if character in SYNTAX_CHARACTERS else character


def _wrap(parts: list[str], *, starts_free: bool, ends_free: bool) -> str:
    anything = "(?:.|\n)*"
    return f"{anything if starts_free else ''}(?:{''.join(parts)}){anything if ends_free else ''}"
