"""Python's regular expressions in Lucene's language: exactly, or not at all.

Lucene's expressions fit a whole value and know no anchors. Values are therefore framed in the
index by two signs of their own: `^` and `$` become those signs, and what may stand before and
after a match is written out. What a finite automaton cannot do is refused.
"""

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Final

from cleats.toolsets.code.opensearch.signs import (
    BEGIN,
    END,
    Ranges,
    category,
    complement,
    one,
    plain,
    union,
    without,
    written,
)

LONGEST: Final = 100_000
"""Characters of an expression in Lucene's language; the index is made to take as many."""

_BEGINS: Final = frozenset({"AT_BEGINNING", "AT_BEGINNING_STRING"})
_ENDS: Final = frozenset({"AT_END", "AT_END_STRING"})
_ENDLESS: Final = 1 << 31
_LINE_END: Final[Ranges] = ((10, 10),)
_CATEGORIES: Final = {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}
_Item = tuple[Any, Any]


class InexpressibleError(ValueError):
    """An expression that Lucene has no equal for; the text says what in it."""


def lucene(pattern: re.Pattern[str]) -> str:
    """An expression that fits a framed value where Python finds the pattern in it.

    Raises:
        InexpressibleError: there is none.
    """
    parsed = import_module("re._parser").parse(pattern.pattern, pattern.flags)
    made = f".*{_row(list(parsed), pattern.flags)}.*"
    if len(made) > LONGEST:
        raise InexpressibleError("is too long when its classes are written out")
    return made


def _row(items: Sequence[_Item], flags: int) -> str:
    """Things one after the other."""
    _check_anchors(items)
    made: list[str] = []
    barred: Ranges = ()
    for at, (name, operand) in enumerate((str(op), operand) for op, operand in items):
        if name == "ASSERT_NOT":
            barred = _forbidden(operand, items[at + 1 :], flags)
            if not operand[1]:
                return written(())  # `(?!)`: nothing at all
            continue
        single = _signs(name, operand, flags)
        if single is not None:
            made.append(written(without(single, barred)))
        else:
            made.append(_whole(name, operand, flags))
        barred = ()
    return "".join(made)


def _forbidden(operand: tuple[int, Any], after: Sequence[_Item], flags: int) -> Ranges:
    """The signs that a look ahead takes from the one sign that follows it, as globs have it."""
    direction, inner = operand
    ahead = [_signs(str(op), each, flags) for op, each in inner]
    follows = bool(after) and _signs(str(after[0][0]), after[0][1], flags) is not None
    if direction == 1 and not ahead:
        return ()
    if direction != 1 or len(ahead) != 1 or ahead[0] is None or not follows:
        raise InexpressibleError("looks ahead or behind")
    return ahead[0]


def _signs(name: str, operand: Any, flags: int) -> Ranges | None:
    """The signs of something that is always exactly one; None when it is something else."""
    ignore = bool(flags & re.IGNORECASE)
    match name:
        case "LITERAL":
            return one(operand, operand, ignore_case=ignore)
        case "NOT_LITERAL":
            return complement(one(operand, operand, ignore_case=ignore))
        case "ANY":
            return complement(() if flags & re.DOTALL else _LINE_END)
        case "IN":
            members = [(str(op), each) for op, each in operand]
            taken = union(_member(op, each, ignore=ignore) for op, each in members)
            return complement(taken) if members[0][0] == "NEGATE" else taken
    return None


def _member(name: str, operand: Any, *, ignore: bool) -> Ranges:
    match name:
        case "NEGATE":
            return ()
        case "LITERAL":
            return one(operand, operand, ignore_case=ignore)
        case "RANGE":
            return one(*operand, ignore_case=ignore)
    kind = str(operand)
    taken = category(_CATEGORIES[kind.replace("_NOT_", "_")])
    return complement(taken) if "_NOT_" in kind else taken


def _whole(name: str, operand: Any, flags: int) -> str:
    match name:
        case "AT":
            return _anchor(str(operand), flags)
        case "BRANCH":
            return f"({'|'.join(_row(list(each), flags) or '()' for each in operand[1])})"
        case "SUBPATTERN":
            _, added, removed, inner = operand
            return f"({_row(list(inner), (flags | added) & ~removed) or '()'})"
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, high, inner = operand
            return f"({_row(list(inner), flags) or '()'}){_times(int(low), int(high))}"
        case "ASSERT":
            raise InexpressibleError("looks ahead or behind")
        case "FAILURE":
            return written(())
    raise InexpressibleError("has a group that never gives back what it took, or a reference")


def _anchor(name: str, flags: int) -> str:
    if name not in _BEGINS | _ENDS:
        raise InexpressibleError(r"asks where a word begins or ends (\b)")
    if flags & re.MULTILINE and not name.endswith("_STRING"):
        raise InexpressibleError("asks where a line begins or ends (the flag m)")
    if name in _BEGINS:
        return BEGIN
    return END if name == "AT_END_STRING" else f"\n?{END}"


def _times(low: int, high: int) -> str:
    endless = high >= _ENDLESS
    short = {(0, True): "*", (1, True): "+"}.get((low, endless))
    if short is not None:
        return short
    if (low, high) == (0, 1):
        return "?"
    return f"{{{low},{'' if endless else high}}}"


def _check_anchors(items: Sequence[_Item]) -> None:
    """Refuse what a sign that is really there cannot stand for: the same place named twice."""
    begins = [at for at, item in enumerate(items) if _holds(item, _BEGINS)]
    ends = [at for at, item in enumerate(items) if _holds(item, _ENDS)]
    repeated = any(
        str(op).endswith("_REPEAT")
        and int(operand[1]) > 1
        and _holds((op, operand), _BEGINS | _ENDS)
        for op, operand in items
    )
    if len(begins) > 1 or len(ends) > 1 or repeated:
        raise InexpressibleError("asks for the beginning or the end more than once")
    loose = ends and _holds(items[ends[0]], frozenset({"AT_END"}))
    if loose and ends[0] < len(items) - 1:
        raise InexpressibleError("goes on after its end ($)")


def _holds(item: _Item, anchors: Iterable[str]) -> bool:
    name, operand = str(item[0]), item[1]
    match name:
        case "AT":
            return str(operand) in anchors
        case "BRANCH":
            return any(_holds(each, anchors) for branch in operand[1] for each in branch)
        case "SUBPATTERN" | "MAX_REPEAT" | "MIN_REPEAT":
            return any(_holds(each, anchors) for each in operand[-1])
    return False


FIELD_ITEMS: Final = r"(\.[0-9]+|\[[0-9]*\])*"
"""Items of a list are fields of their own, `tags.0` or `tags[0]`; who asks for `tags` means any."""


def field(key: str, texts: Sequence[str]) -> str:
    """An expression for `key=value`, both in lower case: the key is there, and has a text."""
    named = plain(key.lower()) + FIELD_ITEMS
    if not texts:
        return rf"{named}[=.\[].*"
    return f"{named}=.*({'|'.join(plain(text.lower()) for text in texts)}).*"
