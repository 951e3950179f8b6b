"""The conditions of filters, their patterns, and the chunks of a shard that satisfy them.

A filter never looks at single chunks: it searches the distinct values of a column, and selects the
owners of those that match.

Globs and regular expressions come from callers. Python's engine backtracks, so a short pattern can take years on a
short text. Constructs that make that possible are rejected: something of variable length, or a choice, inside a
repetition; more than a few unbounded repetitions; references to groups.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from time import monotonic
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.index.columns import Ids, Mask, ShardColumns, Vocabulary, sort_unique
from cleats.toolsets.code.index.digest import ASYNC_FLAG, GENERATOR_FLAG, RETURNS_FLAG

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
        raise make_pattern_error(argument, value, f"is not a valid regular expression: {error}") from None


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
        return "has a back-reference"
    if "nested" in repeats:
        return "has a repetition inside a repetition; remove the inner one"
    if repeats.count("endless") > MAX_UNBOUNDED_REPEATS or len(repeats) > MAX_VARIABLE_REPEATS:
        return f"has more than {MAX_UNBOUNDED_REPEATS} unbounded repetitions, or too many repetitions"
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


PATTERN_TIMEOUT_SECONDS: Final = 2.0
"""Seconds that the patterns of one filter may take on all paths."""

FLAG_BITS: Final[Mapping[str, int]] = {"async": ASYNC_FLAG, "generator": GENERATOR_FLAG, "returns": RETURNS_FLAG}


class TextCondition(Struct, frozen=True):
    """A value contains, equals, ends or begins with one of these texts (`MATCHER_BOUNDARIES`)."""

    texts: tuple[str, ...]
    matcher: str
    cased: bool


class PathPart(Struct, frozen=True):
    """A part of a path, or of the name of a file."""

    text: str
    in_name: bool


class PatternCondition(Struct, frozen=True):
    """A value matches a pattern, or contains a part."""

    patterns: tuple[re.Pattern[str] | PathPart, ...]
    cased: bool


class NegatedCondition(Struct, frozen=True):
    """A value does not satisfy the condition."""

    condition: PatternCondition


class MinimumCondition(Struct, frozen=True):
    """A number is known, and at least this."""

    number: float


class FlagCondition(Struct, frozen=True):
    """A flag is set."""


class FieldCondition(Struct, frozen=True):
    """A field of this name exists, and contains one of these texts if there are any."""

    key: str
    texts: tuple[str, ...]


FilterCondition: TypeAlias = (
    TextCondition | PatternCondition | NegatedCondition | MinimumCondition | FlagCondition | FieldCondition
)


class SearchFilter(Struct, frozen=True):
    """One argument as a condition on a column."""

    argument: str
    column: str
    condition: FilterCondition


MATCHER_BOUNDARIES: Final[Mapping[str, tuple[bytes, bytes]]] = {
    "contains": (b"", b""),
    "is": (rb"\0", rb"\0"),
    "member": (rb"\0.:>#", rb"\0"),
    "module": (rb"\0", rb"\0./:\\"),
}
"""The bytes of which one must precede a text, and those of which one must follow it."""


def compute_mask(columns: ShardColumns, search_filter: SearchFilter) -> Mask:
    """Return the chunks of a shard that pass a filter."""
    match search_filter.condition:
        case NegatedCondition(condition):
            return ~compute_mask(columns, replace(search_filter, condition=condition))
        case MinimumCondition(number):
            numbers = columns.get_numbers(search_filter.column)
            return (numbers >= number) & (numbers >= 0)
        case FlagCondition():
            flags = columns.get_numbers("flags") & FLAG_BITS.get(search_filter.column, 0)
            return np.asarray(columns.get_numbers("lint") if search_filter.column == "lint" else flags != 0)
        case TextCondition() | PatternCondition() | FieldCondition() as condition:
            column = columns.get_column(search_filter.column)
            if column is None:
                return np.zeros(columns.chunk_count, np.bool_)
            ids = _find_values(column.vocabulary, condition, search_filter.argument)
            return columns.spread_to_chunks(search_filter.column, column.mask_owners(ids))


def _find_values(
    vocabulary: Vocabulary, condition: TextCondition | PatternCondition | FieldCondition, argument: str
) -> Ids:
    match condition:
        case TextCondition(texts, matcher, cased):
            patterns = [make_literal_pattern(text, *MATCHER_BOUNDARIES[matcher], cased=cased) for text in texts]
            matches = [vocabulary.find(pattern, cased=cased) for pattern in patterns]
            return matches[0] if len(matches) == 1 else sort_unique(np.concatenate(matches))
        case FieldCondition(key, texts):
            return vocabulary.find(_make_field_pattern(key, texts), cased=False)
        case PatternCondition(patterns, cased):
            return _match_patterns(vocabulary, patterns, argument, cased=cased)


def make_literal_pattern(text: str, before: bytes, after: bytes, *, cased: bool) -> bytes:
    """Return a pattern for a text between one of some bytes and one of others.

    The text itself comes first and the byte before it is checked afterwards: only then does the
    regex engine jump from one occurrence to the next.
    """
    escaped = re.escape((text if cased else text.lower()).encode(errors="surrogatepass"))
    lookbehind = b"(?<=[" + before + b"]" + escaped + b")" if before else b""
    return escaped + lookbehind + (b"(?=[" + after + b"])" if after else b"")


def _make_field_pattern(key: str, texts: Sequence[str]) -> bytes:
    # Items of a list are separate fields, `tags.0` or `tags[0]`; a filter on `tags` means any.
    key_pattern = rb"\0" + re.escape(key.lower().encode()) + rb"(?:\.\d+|\[\d*\])*"
    if not texts:
        return key_pattern + rb"(?=[=.\[])"
    encoded_texts = [text.lower().encode(errors="surrogatepass") for text in texts]
    return key_pattern + rb"=[^\0]*?(?:" + b"|".join(map(re.escape, encoded_texts)) + b")"


def _match_patterns(
    vocabulary: Vocabulary, patterns: Sequence[re.Pattern[str] | PathPart], argument: str, *, cased: bool
) -> Ids:
    deadline = monotonic() + PATTERN_TIMEOUT_SECONDS
    numbers: list[int] = []
    for number, value in enumerate(vocabulary.values()):
        if any(matches_pattern(pattern, value, cased=cased) for pattern in patterns):
            numbers.append(number)
        if monotonic() > deadline:
            raise make_pattern_error(argument, "the pattern", "takes too long")
    return np.asarray(numbers, np.int32)


def matches_pattern(pattern: re.Pattern[str] | PathPart, value: str, *, cased: bool) -> bool:
    """Return whether a path, or an extension, matches."""
    if isinstance(pattern, re.Pattern):
        return pattern.search(value) is not None
    subject = value.rpartition("/")[2] if pattern.in_name else value
    return pattern.text in (subject if cased else subject.lower())
