"""Translation of Python's regular expressions to Lucene's: exact, or rejected.

Lucene's expressions match a whole value and have no anchors. Values are therefore framed in the
index by two special characters: `^` and `$` become those characters, and the text before and after
a match is written out. Constructs beyond a finite automaton are rejected.
"""

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Final

from cleats.toolsets.code.sharing.opensearch.character_sets import (
    FRAME_END,
    FRAME_START,
    CodePointRanges,
    escape_text,
    expand_class,
    expand_range,
    format_ranges,
    invert_ranges,
    merge_ranges,
    subtract_ranges,
)

MAX_LUCENE_CHARS: Final = 100_000
"""Characters of an expression in Lucene's language; the index is configured for as many."""

_START_ANCHORS: Final = frozenset({"AT_BEGINNING", "AT_BEGINNING_STRING"})
_END_ANCHORS: Final = frozenset({"AT_END", "AT_END_STRING"})
_UNBOUNDED_REPEAT: Final = 1 << 31
_LINE_FEED_RANGE: Final[CodePointRanges] = ((10, 10),)
_CLASSES_BY_CATEGORY: Final = {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}
_ParsedItem = tuple[Any, Any]


class InexpressibleError(ValueError):
    """A pattern without an equivalent in Lucene; the message names the construct."""


def translate_pattern(pattern: re.Pattern[str]) -> str:
    """Return an expression that matches a framed value where Python finds the pattern in it.

    Raises:
        InexpressibleError: there is none.
    """
    parsed = import_module("re._parser").parse(pattern.pattern, pattern.flags)
    expression = f".*{_translate_sequence(list(parsed), pattern.flags)}.*"
    if len(expression) > MAX_LUCENE_CHARS:
        raise InexpressibleError("is too long when its classes are written out")
    return expression


def _translate_sequence(items: Sequence[_ParsedItem], flags: int) -> str:
    _check_anchors(items)
    translated: list[str] = []
    excluded: CodePointRanges = ()
    for index, (name, operand) in enumerate((str(op), operand) for op, operand in items):
        if name == "ASSERT_NOT":
            excluded = _parse_negative_lookahead(operand, items[index + 1 :], flags)
            if not operand[1]:
                return format_ranges(())  # `(?!)` never matches
            continue
        char_ranges = _single_char_ranges(name, operand, flags)
        if char_ranges is not None:
            translated.append(format_ranges(subtract_ranges(char_ranges, excluded)))
        else:
            translated.append(_translate_item(name, operand, flags))
        excluded = ()
    return "".join(translated)


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
        raise InexpressibleError("looks ahead or behind")
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


def _translate_item(name: str, operand: Any, flags: int) -> str:
    match name:
        case "AT":
            return _translate_anchor(str(operand), flags)
        case "BRANCH":
            return f"({'|'.join(_translate_sequence(list(branch), flags) or '()' for branch in operand[1])})"
        case "SUBPATTERN":
            _, added, removed, inner = operand
            return f"({_translate_sequence(list(inner), (flags | added) & ~removed) or '()'})"
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, high, inner = operand
            return f"({_translate_sequence(list(inner), flags) or '()'}){_format_quantifier(int(low), int(high))}"
        case "ASSERT":
            raise InexpressibleError("looks ahead or behind")
        case "FAILURE":
            return format_ranges(())
    raise InexpressibleError("has a group that never gives back what it took, or a reference")


def _translate_anchor(name: str, flags: int) -> str:
    if name not in _START_ANCHORS | _END_ANCHORS:
        raise InexpressibleError(r"asks where a word begins or ends (\b)")
    if flags & re.MULTILINE and not name.endswith("_STRING"):
        raise InexpressibleError("asks where a line begins or ends (the flag m)")
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
        raise InexpressibleError("asks for the beginning or the end more than once")
    allows_line_feed = end_indexes and _contains_anchor(items[end_indexes[0]], frozenset({"AT_END"}))
    if allows_line_feed and end_indexes[0] < len(items) - 1:
        raise InexpressibleError("goes on after its end ($)")


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
