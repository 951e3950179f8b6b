"""Translation of Python's regular expressions to Lucene's: exact, or rejected.

Lucene's expressions match a whole value and have no anchors. Values are therefore framed in the index by two special
characters: `^` and `$` become those characters, and the text before and after a match is written out. Constructs beyond
a finite automaton are rejected. Lucene has neither Python's character classes nor its case rules, so each set of
characters is written out as ranges of code points with exactly the characters that Python matches.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeAlias

CodePointRanges: TypeAlias = tuple[tuple[int, int], ...]
"""Ranges of code points, sorted, both ends included, never adjacent."""

MAX_CODE_POINT: Final = 0x10FFFF
MAX_CASED_CODE_POINT: Final = 0x20000
"""Code points from here on have no uppercase forms."""

FRAME_START, FRAME_END = "\x02", "\x03"
"""Characters before and after every path in the index, which turn an anchor into a character."""

FRAME_RANGES: Final[CodePointRanges] = ((ord(FRAME_START), ord(FRAME_END)),)

MAX_LUCENE_CHARS: Final = 100_000
"""Characters of an expression in Lucene's language; the index is configured for as many."""

_START_ANCHORS: Final = frozenset({"AT_BEGINNING", "AT_BEGINNING_STRING"})
_END_ANCHORS: Final = frozenset({"AT_END", "AT_END_STRING"})
_UNBOUNDED_REPEAT: Final = 1 << 31
_LINE_FEED_RANGE: Final[CodePointRanges] = ((10, 10),)
_ASCII_RANGE: Final[CodePointRanges] = ((0, 127),)
_CLASSES_BY_CATEGORY: Final = {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}
_ParsedItem = tuple[Any, Any]


class InexpressibleError(ValueError):
    """A pattern without an equivalent in Lucene; the message names the construct."""


def translate_pattern(pattern: re.Pattern[str], alphabet: str | None = None) -> str:
    r"""Return an expression that matches a framed value where Python finds the pattern in it.

    With an alphabet, the expression is exact only for values of ASCII characters and those of the alphabet. It is then
    short: the full ranges of a class such as `\w` keep a cluster busy for seconds.

    Raises:
        InexpressibleError: there is none.
    """
    parsed = import_module("re._parser").parse(pattern.pattern, pattern.flags)
    chars = ((0, MAX_CODE_POINT),) if alphabet is None else merge_ranges(((code, code),) for code in map(ord, alphabet))
    translator = _PatternTranslator(merge_ranges([chars, _ASCII_RANGE]))
    expression = f".*{translator.translate_sequence(list(parsed), pattern.flags)}.*"
    if len(expression) > MAX_LUCENE_CHARS:
        raise InexpressibleError("is too long with its character classes expanded")
    return expression


@dataclass(frozen=True, slots=True)
class _PatternTranslator:
    """Translates the items of a pattern for values of an alphabet."""

    alphabet: CodePointRanges

    def translate_sequence(self, items: Sequence[_ParsedItem], flags: int) -> str:
        _check_anchors(items)
        translated: list[str] = []
        excluded: CodePointRanges = ()
        for index, (name, operand) in enumerate((str(op), operand) for op, operand in items):
            if name == "ASSERT_NOT":
                excluded = _parse_negative_lookahead(operand, items[index + 1 :], flags)
                if not operand[1]:
                    return format_ranges((), self.alphabet)  # `(?!)` never matches
                continue
            char_ranges = _single_char_ranges(name, operand, flags)
            if char_ranges is not None:
                translated.append(format_ranges(subtract_ranges(char_ranges, excluded), self.alphabet))
            else:
                translated.append(self._translate_item(name, operand, flags))
            excluded = ()
        return "".join(translated)

    def _translate_item(self, name: str, operand: Any, flags: int) -> str:
        match name:
            case "AT":
                return _translate_anchor(str(operand), flags)
            case "BRANCH":
                return f"({'|'.join(self.translate_sequence(list(branch), flags) or '()' for branch in operand[1])})"
            case "SUBPATTERN":
                _, added, removed, inner = operand
                return f"({self.translate_sequence(list(inner), (flags | added) & ~removed) or '()'})"
            case "MAX_REPEAT" | "MIN_REPEAT":
                low, high, inner = operand
                return (
                    f"({self.translate_sequence(list(inner), flags) or '()'}){_format_quantifier(int(low), int(high))}"
                )
            case "ASSERT":
                raise InexpressibleError("uses a lookahead or a lookbehind")
            case "FAILURE":
                return format_ranges((), self.alphabet)
        raise InexpressibleError("uses an atomic group, a possessive quantifier or a back-reference")


def _parse_negative_lookahead(
    operand: tuple[int, Any], following: Sequence[_ParsedItem], flags: int
) -> CodePointRanges:
    """Return the characters that a lookahead excludes from the single next one, as globs use it."""
    direction, inner = operand
    lookahead_ranges = [_single_char_ranges(str(op), inner_operand, flags) for op, inner_operand in inner]
    precedes_char = bool(following) and _single_char_ranges(str(following[0][0]), following[0][1], flags) is not None
    if direction == 1 and not lookahead_ranges:
        return ()
    if direction != 1 or len(lookahead_ranges) != 1 or lookahead_ranges[0] is None or not precedes_char:
        raise InexpressibleError("uses a lookahead or a lookbehind")
    return lookahead_ranges[0]


def _single_char_ranges(name: str, operand: Any, flags: int) -> CodePointRanges | None:
    """Return the characters of an item that always matches exactly one, or None for other items."""
    ignore_case = bool(flags & re.IGNORECASE)
    match name:
        case "LITERAL":
            return expand_range(operand, operand, ignore_case=ignore_case)
        case "NOT_LITERAL":
            return invert_ranges(expand_range(operand, operand, ignore_case=ignore_case))
        case "ANY":
            return invert_ranges(() if flags & re.DOTALL else _LINE_FEED_RANGE)
        case "IN":
            members = [(str(op), member_operand) for op, member_operand in operand]
            included = merge_ranges(
                _class_member_ranges(op, member_operand, ignore_case=ignore_case) for op, member_operand in members
            )
            return invert_ranges(included) if members[0][0] == "NEGATE" else included
    return None


def _class_member_ranges(name: str, operand: Any, *, ignore_case: bool) -> CodePointRanges:
    match name:
        case "NEGATE":
            return ()
        case "LITERAL":
            return expand_range(operand, operand, ignore_case=ignore_case)
        case "RANGE":
            return expand_range(*operand, ignore_case=ignore_case)
    kind = str(operand)
    included = expand_class(_CLASSES_BY_CATEGORY[kind.replace("_NOT_", "_")])
    return invert_ranges(included) if "_NOT_" in kind else included


def _translate_anchor(name: str, flags: int) -> str:
    if name not in _START_ANCHORS | _END_ANCHORS:
        raise InexpressibleError(r"uses a word boundary (\b)")
    if flags & re.MULTILINE and not name.endswith("_STRING"):
        raise InexpressibleError("uses the flag m (^ and $ at every line)")
    if name in _START_ANCHORS:
        return FRAME_START
    return FRAME_END if name == "AT_END_STRING" else f"\n?{FRAME_END}"


def _format_quantifier(low: int, high: int) -> str:
    is_unbounded = high >= _UNBOUNDED_REPEAT
    shorthand = {(0, True): "*", (1, True): "+"}.get((low, is_unbounded))
    if shorthand is not None:
        return shorthand
    if (low, high) == (0, 1):
        return "?"
    return f"{{{low},{'' if is_unbounded else high}}}"


def _check_anchors(items: Sequence[_ParsedItem]) -> None:
    """Reject anchors that a real character cannot replace: the same position matched twice."""
    start_indexes = [index for index, item in enumerate(items) if _contains_anchor(item, _START_ANCHORS)]
    end_indexes = [index for index, item in enumerate(items) if _contains_anchor(item, _END_ANCHORS)]
    repeated = any(
        str(op).endswith("_REPEAT")
        and int(operand[1]) > 1
        and _contains_anchor((op, operand), _START_ANCHORS | _END_ANCHORS)
        for op, operand in items
    )
    if len(start_indexes) > 1 or len(end_indexes) > 1 or repeated:
        raise InexpressibleError("uses ^ or $ more than once")
    allows_line_feed = end_indexes and _contains_anchor(items[end_indexes[0]], frozenset({"AT_END"}))
    if allows_line_feed and end_indexes[0] < len(items) - 1:
        raise InexpressibleError("continues after $")


def _contains_anchor(item: _ParsedItem, anchors: Iterable[str]) -> bool:
    name, operand = str(item[0]), item[1]
    match name:
        case "AT":
            return str(operand) in anchors
        case "BRANCH":
            return any(_contains_anchor(child, anchors) for branch in operand[1] for child in branch)
        case "SUBPATTERN" | "MAX_REPEAT" | "MIN_REPEAT":
            return any(_contains_anchor(child, anchors) for child in operand[-1])
    return False


LIST_ITEM_PATTERN: Final = r"(\.[0-9]+|\[[0-9]*\])*"
"""Items of a list are separate fields, `tags.0` or `tags[0]`; a filter for `tags` matches any."""


def build_field_expression(key: str, texts: Sequence[str]) -> str:
    """Build an expression for `key=value`, both lowercased: the key exists and contains a text."""
    key_expression = escape_text(key.lower()) + LIST_ITEM_PATTERN
    if not texts:
        return rf"{key_expression}[=.\[].*"
    return f"{key_expression}=.*({'|'.join(escape_text(text.lower()) for text in texts)}).*"


def expand_range(first: int, last: int, *, ignore_case: bool) -> CodePointRanges:
    """Return the characters of a range, and those that Python treats as equal to them."""
    ranges: CodePointRanges = ((first, last),)
    if not ignore_case:
        return ranges
    source = f"[{re.escape(chr(first))}-{re.escape(chr(last))}]"
    equal_chars = map(ord, re.findall(source, _cased_chars(), re.IGNORECASE))
    return merge_ranges([ranges, *(((code, code),) for code in equal_chars)])


@cache
def expand_class(source: str) -> CodePointRanges:
    """Return the characters of one of Python's classes, such as digits."""
    chars = "".join(map(chr, (*range(0xD800), *range(0xE000, MAX_CODE_POINT + 1))))
    runs = re.finditer(f"{source}+", chars)
    return tuple((ord(chars[run.start()]), ord(chars[run.end() - 1])) for run in runs)


@cache
def _cased_chars() -> str:
    chars = map(chr, range(MAX_CASED_CODE_POINT))
    return "".join(char for char in chars if char.lower() != char or char.upper() != char)


def merge_ranges(range_sets: Iterable[CodePointRanges]) -> CodePointRanges:
    """Return the characters of all sets."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(code_range for ranges in range_sets for code_range in ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def invert_ranges(ranges: CodePointRanges) -> CodePointRanges:
    """Return all other characters."""
    return tuple(_iterate_gaps(ranges))


def _iterate_gaps(ranges: CodePointRanges) -> Iterator[tuple[int, int]]:
    next_code = 0
    for first, last in ranges:
        if next_code < first:
            yield next_code, first - 1
        next_code = last + 1
    if next_code <= MAX_CODE_POINT:
        yield next_code, MAX_CODE_POINT


def subtract_ranges(ranges: CodePointRanges, excluded: CodePointRanges) -> CodePointRanges:
    """Return the characters of one set that are not in another."""
    return invert_ranges(merge_ranges([invert_ranges(ranges), excluded]))


def format_ranges(ranges: CodePointRanges, alphabet: CodePointRanges) -> str:
    """Format a set in Lucene's language, without the frame characters; only the characters of an alphabet count."""
    excluded = merge_ranges([subtract_ranges(alphabet, ranges), FRAME_RANGES])
    included = subtract_ranges(alphabet, excluded)
    if not included:
        return f"{FRAME_END}{FRAME_START}"  # occurs in no framed text
    if len(included) == 1 and included[0][0] == included[0][1]:
        return escape_text(chr(included[0][0]))
    if len(excluded) < len(included):
        return f"[^{''.join(map(_format_range, excluded))}]"
    return f"[{''.join(map(_format_range, included))}]"


def _format_range(code_range: tuple[int, int]) -> str:
    first, last = (escape_text(chr(code)) for code in code_range)
    return first if code_range[0] == code_range[1] else f"{first}-{last}"


def escape_text(text: str) -> str:
    """Escape a text for Lucene: every ASCII character that could have a special meaning."""
    return "".join(
        f"\\{char}" if char.isascii() and char.isprintable() and not char.isalnum() else char for char in text
    )
