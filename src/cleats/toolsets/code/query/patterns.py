"""Globs and regular expressions from callers: compiled, and rejected if they could run forever.

Python's engine backtracks, so a short pattern can take years on a short text. Constructs that make
that possible are rejected: something of variable length, or a choice, inside a repetition; more
than a few unbounded repetitions; references to groups.
"""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError

MAX_PATTERN_CHARS: Final = 256
MAX_UNBOUNDED_REPEATS: Final = 4
"""Unbounded repetitions: the time grows with the length of the text to this power."""
MAX_VARIABLE_REPEATS: Final = 12
"""Repetitions of variable length in total: each in a row of optional letters doubles the time."""

_SLASHED_REGEX_PATTERN = re.compile(r"/(?P<body>.+)/(?P<flags>[imsu]*)", re.DOTALL)


HINTS_BY_ARGUMENT: Final = {"ext": "Use an extension such as py, a glob such as ts*, or a simpler /regex/."}
DEFAULT_HINT: Final = "Use part of the path, a glob such as src/**/*.py, or a simpler /regex/."


def make_pattern_error(argument: str, value: str, reason: str, *, hint: str = "") -> ToolError:
    """Return the error for a pattern that cannot be used."""
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{argument}: {value!r} {reason}",
        hint=hint or HINTS_BY_ARGUMENT.get(argument, DEFAULT_HINT),
        details=[{"instancePath": f"/{argument}", "keyword": "pattern", "message": reason}],
    )


def compile_regex(argument: str, value: str, *, ignore_case: bool) -> re.Pattern[str] | None:
    """Compile the expression in `/…/flags`; return None when the value is not one.

    Raises:
        ToolError: INVALID_REQUEST, it is not valid or not safe.
    """
    matched = _SLASHED_REGEX_PATTERN.fullmatch(value)
    if matched is None:
        return None
    body = matched["body"]
    if len(body) > MAX_PATTERN_CHARS:
        raise make_pattern_error(argument, value, f"is longer than {MAX_PATTERN_CHARS} characters")
    flags = re.IGNORECASE if ignore_case or "i" in matched["flags"] else re.RegexFlag(0)
    flags |= re.DOTALL if "s" in matched["flags"] else re.RegexFlag(0)
    flags |= re.MULTILINE if "m" in matched["flags"] else re.RegexFlag(0)
    try:
        if danger := _find_danger(body):
            raise make_pattern_error(argument, value, danger)
        return re.compile(body, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise make_pattern_error(argument, value, f"is not a regular expression: {error}") from None


def is_glob(value: str) -> bool:
    """Return whether a value has wildcards. Brackets do not count: `[id].tsx` is a name."""
    return "*" in value or "?" in value


def compile_glob(argument: str, value: str, *, ignore_case: bool) -> re.Pattern[str]:
    """Compile a glob for a whole path, or for a file name when it has no slash.

    `*` and `?` stay within a folder, `**` crosses folders, `[ab]` and `{a,b}` are choices.

    Raises:
        ToolError: INVALID_REQUEST, it has too many wildcards.
    """
    if len(value) > MAX_PATTERN_CHARS or len(re.findall(r"\*+", value)) > MAX_VARIABLE_REPEATS:
        raise make_pattern_error(argument, value, f"has more than {MAX_VARIABLE_REPEATS} wildcards or is too long")
    body = _translate_glob(value)
    prefix = "" if "/" in value else "(?:.*/)?"
    try:
        return re.compile(rf"\A{prefix}{body}\Z", re.DOTALL | (re.IGNORECASE if ignore_case else 0))
    except re.error:
        raise make_pattern_error(argument, value, "is not a glob") from None


_GLOB_PIECE_PATTERN = re.compile(
    r"(?P<through>(?:(?<=/)|\A)\*\*/)|(?P<all>\*\*+)|(?P<some>\*)|(?P<one>\?)"
    r"|\[(?P<negated>[!^]?)(?P<set>\]?[^\]/]*)\]|\{(?P<choice>[^{}]*)\}|(?P<plain>.)",
    re.DOTALL,
)


def _translate_glob(value: str) -> str:
    return "".join(_translate_piece(matched) for matched in _GLOB_PIECE_PATTERN.finditer(value))


_WILDCARD_REGEXES = {"through": "(?:.*/)?", "all": ".*", "some": "[^/]*", "one": "[^/]"}


def _translate_piece(matched: re.Match[str]) -> str:
    kind = matched.lastgroup or ""
    if kind == "set":
        characters = matched["set"].replace("\\", "\\\\").replace("[", "\\[")
        return f"(?!/)[{'^' if matched['negated'] else ''}{characters}]" if characters else r"\[\]"
    if kind == "choice":
        return "(?:" + "|".join(map(_translate_glob, matched["choice"].split(","))) + ")"
    return _WILDCARD_REGEXES.get(kind) or re.escape(matched[0])


def _find_danger(body: str) -> str:
    """Explain why an expression could run forever; empty when it cannot."""
    repeats = list(_classify_repeats(import_module("re._parser").parse(body), is_nested=False))
    if "group" in repeats:
        return "refers back to a group"
    if "nested" in repeats:
        return "repeats something that itself varies; write the inner part without a repetition"
    if repeats.count("endless") > MAX_UNBOUNDED_REPEATS or len(repeats) > MAX_VARIABLE_REPEATS:
        return f"has more than {MAX_UNBOUNDED_REPEATS} repetitions without an end, or too many in all"
    return ""


def _classify_repeats(parsed: Iterable[tuple[Any, Any]], *, is_nested: bool) -> Iterator[str]:
    for operation, operand in parsed:
        name = str(operation)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            low, high, inner = operand
            if low != high:
                yield "nested" if is_nested else ("endless" if int(high) > 100 else "variable")
            elif int(high) > 100:
                yield "nested"  # a thousand times anything is a long text to look for
            yield from _classify_repeats(inner, is_nested=is_nested or int(high) > 1)
        elif name == "BRANCH":
            if is_nested:
                yield "nested"
            for branch in operand[1]:
                yield from _classify_repeats(branch, is_nested=is_nested)
        elif name.startswith("GROUPREF"):
            yield "group"
        elif name in {"SUBPATTERN", "ASSERT", "ASSERT_NOT", "ATOMIC_GROUP"}:
            inner = operand[-1] if isinstance(operand, tuple) else operand
            yield from _classify_repeats(inner, is_nested=is_nested)
