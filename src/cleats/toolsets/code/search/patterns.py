"""Globs and regular expressions that a caller sends: compiled, and none that could run for ever.

Python's engine backtracks, so a short pattern can take years on a short text. What makes that
possible is refused: something of variable length, or a choice, inside a repetition; more than a
few repetitions without an end; references to groups.
"""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError

LONGEST: Final = 256
ENDLESS: Final = 4
"""Repetitions without an end: the time grows with the length of the text to this power."""
VARIABLE: Final = 12
"""Repetitions of variable length in all: a row of optional letters doubles the time with each."""

_REGEX = re.compile(r"/(?P<body>.+)/(?P<flags>[imsu]*)", re.DOTALL)


HINTS: Final = {"ext": "Use an extension such as py, a glob such as ts*, or a simpler /regex/."}
HINT: Final = "Use part of the path, a glob such as src/**/*.py, or a simpler /regex/."


def refused(argument: str, value: str, why: str, *, hint: str = "") -> ToolError:
    """The error for a pattern that cannot be used."""
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{argument}: {value!r} {why}",
        hint=hint or HINTS.get(argument, HINT),
        details=[{"instancePath": f"/{argument}", "keyword": "pattern", "message": why}],
    )


def regex(argument: str, value: str, *, ignore_case: bool) -> re.Pattern[str] | None:
    """The expression in `/…/flags`; None when the value is not one.

    Raises:
        ToolError: INVALID_REQUEST, it is not valid or not safe.
    """
    found = _REGEX.fullmatch(value)
    if found is None:
        return None
    body = found["body"]
    if len(body) > LONGEST:
        raise refused(argument, value, f"is longer than {LONGEST} characters")
    flags = re.IGNORECASE if ignore_case or "i" in found["flags"] else re.RegexFlag(0)
    flags |= re.DOTALL if "s" in found["flags"] else re.RegexFlag(0)
    flags |= re.MULTILINE if "m" in found["flags"] else re.RegexFlag(0)
    try:
        if danger := _danger(body):
            raise refused(argument, value, danger)
        return re.compile(body, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise refused(argument, value, f"is not a regular expression: {error}") from None


def is_glob(value: str) -> bool:
    """Whether a value has wildcards. A bracket alone does not count: `[id].tsx` is a name."""
    return "*" in value or "?" in value


def glob(argument: str, value: str, *, ignore_case: bool) -> re.Pattern[str]:
    """A pattern for a whole path, or for a name when it has no slash.

    `*` and `?` stay within a folder, `**` goes through folders, `[ab]` and `{a,b}` are choices.

    Raises:
        ToolError: INVALID_REQUEST, it has too many wildcards.
    """
    if len(value) > LONGEST or len(re.findall(r"\*+", value)) > VARIABLE:
        raise refused(argument, value, f"has more than {VARIABLE} wildcards or is too long")
    body = _translated(value)
    lead = "" if "/" in value else "(?:.*/)?"
    try:
        return re.compile(rf"\A{lead}{body}\Z", re.DOTALL | (re.IGNORECASE if ignore_case else 0))
    except re.error:
        raise refused(argument, value, "is not a glob") from None


_PIECE = re.compile(
    r"(?P<through>(?:(?<=/)|\A)\*\*/)|(?P<all>\*\*+)|(?P<some>\*)|(?P<one>\?)"
    r"|\[(?P<negated>[!^]?)(?P<set>\]?[^\]/]*)\]|\{(?P<choice>[^{}]*)\}|(?P<plain>.)",
    re.DOTALL,
)


def _translated(value: str) -> str:
    return "".join(_piece(found) for found in _PIECE.finditer(value))


_WILD = {"through": "(?:.*/)?", "all": ".*", "some": "[^/]*", "one": "[^/]"}


def _piece(found: re.Match[str]) -> str:
    kind = found.lastgroup or ""
    if kind == "set":
        signs = found["set"].replace("\\", "\\\\").replace("[", "\\[")
        return f"(?!/)[{'^' if found['negated'] else ''}{signs}]" if signs else r"\[\]"
    if kind == "choice":
        return "(?:" + "|".join(map(_translated, found["choice"].split(","))) + ")"
    return _WILD.get(kind) or re.escape(found[0])


def _danger(body: str) -> str:
    """Why an expression could run for ever; empty when it cannot."""
    repeats = list(_repeats(import_module("re._parser").parse(body), within=False))
    if "group" in repeats:
        return "refers back to a group"
    if "nested" in repeats:
        return "repeats something that itself varies; write the inner part without a repetition"
    if repeats.count("endless") > ENDLESS or len(repeats) > VARIABLE:
        return f"has more than {ENDLESS} repetitions without an end, or too many in all"
    return ""


def _repeats(parsed: Iterable[tuple[Any, Any]], *, within: bool) -> Iterator[str]:
    for operation, operand in parsed:
        name = str(operation)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            low, high, inner = operand
            if low != high:
                yield "nested" if within else ("endless" if int(high) > 100 else "variable")
            elif int(high) > 100:
                yield "nested"  # a thousand times anything is a long text to look for
            yield from _repeats(inner, within=within or int(high) > 1)
        elif name == "BRANCH":
            if within:
                yield "nested"
            for branch in operand[1]:
                yield from _repeats(branch, within=within)
        elif name.startswith("GROUPREF"):
            yield "group"
        elif name in {"SUBPATTERN", "ASSERT", "ASSERT_NOT", "ATOMIC_GROUP"}:
            inner = operand[-1] if isinstance(operand, tuple) else operand
            yield from _repeats(inner, within=within)
