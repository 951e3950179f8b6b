"""The request of a search: arguments parsed, names resolved, patterns compiled, no index needed.

A value of a path filter is a part of a path, a glob or a `/regex/`; after a `!` it excludes. An
absolute path must be inside the repository.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from time import time
from typing import Any, Final, NamedTuple

from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis import kinds
from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.query.arguments import DEFAULT_TOP_HITS, FILTER_ARGUMENTS, SearchArgument
from cleats.toolsets.code.query.filters import (
    FieldCondition,
    FilterCondition,
    FlagCondition,
    MinimumCondition,
    NegatedCondition,
    PathPart,
    PatternCondition,
    SearchFilter,
    TextCondition,
    compile_glob,
    compile_regex,
    is_glob,
    make_pattern_error,
)
from cleats.toolsets.code.query.parser import parse_query
from cleats.toolsets.code.query.tree import ParsedQuery

DEFAULT_PROSE_HITS: Final = 3
"""Documents, and as many comments, that an answer shows with code when no number is requested."""


class HitLimits(NamedTuple):
    """The number of hits of code, and of each other mode."""

    code: int
    other: int


def choose_limits(args: Mapping[str, Any]) -> HitLimits:
    """Return the limits that the arguments of a search ask for."""
    if args.get("top") is None:
        is_mixed = (args.get("mode") or "both") == "both"
        return HitLimits(DEFAULT_TOP_HITS, DEFAULT_PROSE_HITS if is_mixed else DEFAULT_TOP_HITS)
    top = max(1, int(args["top"]))
    return HitLimits(top, top)


MODES_BY_ARGUMENT: Final[Mapping[str, tuple[Mode, ...]]] = {
    "code": ("code",),
    "prose": ("prose", "extracted-prose"),
    "extracted-prose": ("extracted-prose",),
    "records": ("records",),
    "both": ("code", "prose", "extracted-prose"),
    "all": ("code", "prose", "extracted-prose", "records"),
}
DAY_SECONDS: Final = 86_400
MAX_AGE_DAYS: Final = 1e9
"""More days than any commit is old; a number may have more digits than a float can hold."""
_TIMESTAMP_PATTERN = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?")

NO_MATCH_PATTERN: Final = re.compile(r"(?!)")


class SearchRoots(Struct, frozen=True):
    """The folders that absolute paths may point into."""

    root: Path | None = None
    other_roots: Sequence[Path] = ()
    """Other repositories that are searched with the same values."""

    def contains(self, text: str) -> bool:
        """Return whether a text is an absolute path inside one of the roots."""
        roots = [*self.other_roots, *([self.root] if self.root else [])]
        return Path(text).is_absolute() and any(map(_resolve_path(text).is_relative_to, roots))

    def make_relative(self, argument: str, text: str) -> str | None:
        """Return a path relative to the repository; None if it is in another repository.

        Raises:
            ToolError: INVALID_REQUEST, it is in none of them.
        """
        path = _resolve_path(text)
        if self.root is not None and path.is_relative_to(self.root):
            return path.relative_to(self.root).as_posix()
        if any(path.is_relative_to(other_root) for other_root in self.other_roots):
            return None
        root = self.root or "the root of the repository"
        hint = f"Write the path relative to {root}, without a leading slash."
        raise make_pattern_error(argument, text, "is not in the repository", hint=hint)


NO_ROOTS: Final = SearchRoots()


class SearchRequest(Struct, frozen=True, kw_only=True):
    """Everything a search needs to know."""

    text: str
    query: ParsedQuery
    modes: tuple[Mode, ...] = MODES_BY_ARGUMENT["both"]
    filters: tuple[SearchFilter, ...] = ()
    branch: str = ""
    cased: bool = False
    """True if words match only in the given case."""
    top: int = DEFAULT_TOP_HITS
    other_top: int = 0
    """Hits of each mode except code; 0 for as many as of code."""
    context: int = 0
    output: str = "compact"
    use_meaning: bool = True
    meaning_requested: bool = False
    """True if the caller asked that meaning counts, rather than the default."""
    backend: str = "auto"
    explain: bool = False
    demote_tests: bool = False
    """True if test code ranks lower than other code."""


def parse_request(
    arguments: Mapping[str, Any], *, demote_tests: bool = False, roots: SearchRoots = NO_ROOTS
) -> SearchRequest:
    """Parse arguments that match the schema; the other values are settings and locations.

    Raises:
        ToolError: INVALID_REQUEST, an argument is invalid; the message names it and the reason.
    """
    text = str(arguments["query"]).strip()
    limits, use_meaning = choose_limits(arguments), arguments.get("ann")
    return SearchRequest(
        text=text,
        query=parse_query(text),
        modes=MODES_BY_ARGUMENT[arguments.get("mode") or "both"],
        filters=tuple(_make_filters(arguments, roots)),
        branch=str(arguments.get("branch") or ""),
        cased=bool(arguments.get("case") or arguments.get("caseTokens")),
        top=limits.code,
        other_top=limits.other,
        context=int(arguments.get("context") or 0),
        output=arguments.get("output") or "compact",
        use_meaning=True if use_meaning is None else bool(use_meaning),
        meaning_requested=bool(use_meaning),
        backend=arguments.get("backend") or "auto",
        explain=bool(arguments.get("explain")),
        demote_tests=demote_tests,
    )


def _make_filters(arguments: Mapping[str, Any], roots: SearchRoots) -> Iterator[SearchFilter]:
    cased = bool(arguments.get("case") or arguments.get("caseFile"))
    for argument in FILTER_ARGUMENTS:
        value = arguments.get(argument.name)
        if value is None or value is False:
            continue
        if argument.name == "risk" and arguments.get("riskTag") is not None:
            continue  # the narrower name counts
        for condition in _make_conditions(argument, value, roots, cased=cased):
            yield SearchFilter(argument.name, argument.column, condition)


def _make_conditions(
    argument: SearchArgument, value: Any, roots: SearchRoots, *, cased: bool
) -> Iterator[FilterCondition]:
    match argument.matcher:
        case "contains" | "contains-cased":
            yield TextCondition(_split_texts(argument, value), "contains", argument.matcher == "contains-cased")
        case "is" | "member" | "module":
            yield TextCondition(_split_texts(argument, value), argument.matcher, cased=True)
        case "kind":
            yield TextCondition(tuple(_resolve_kinds(argument, value)), "is", cased=True)
        case "language":
            yield TextCondition(tuple(_resolve_languages(argument, value)), "is", cased=True)
        case "path" | "file" | "extension":
            # A regular expression may hold what separates values.
            is_regex = isinstance(value, str) and re.fullmatch(r"!?/.*/[imsu]*", value, re.DOTALL)
            texts = (value,) if is_regex else _split_texts(argument, value)
            yield from _compile_path_conditions(argument, texts, roots, cased=cased)
        case "least":
            yield MinimumCondition(value)
        case "since":
            yield MinimumCondition(_parse_timestamp(argument, value))
        case "flag":
            yield FlagCondition()
        case "fields":
            yield from _parse_fields(argument, value)


def _split_texts(argument: SearchArgument, value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else list(value)
    if argument.separators:
        values = [part for item in values for part in re.split(f"[{argument.separators}]", item)]
    texts = tuple(text for item in values if (text := item.strip()))
    if not texts:
        raise _make_argument_error(argument, value, "is empty", "Give a value, or omit the argument.")
    return texts


def _resolve_kinds(argument: SearchArgument, value: Any) -> Iterator[str]:
    for text in _split_texts(argument, value):
        if not (kind_names := kinds.resolve_kinds(text)):
            known_kinds = [*kinds.CHUNK_KINDS, *kinds.KIND_ALIASES]
            raise _make_argument_error(argument, text, "is not a known kind", _suggest_nearest(text, known_kinds))
        yield from kind_names


def _resolve_languages(argument: SearchArgument, value: Any) -> Iterator[str]:
    from cleats.toolsets.code.analysis.languages.language_names import map_languages_by_name  # noqa: PLC0415 - large

    languages_by_name = map_languages_by_name()
    for text in _split_texts(argument, value):
        if not (languages := languages_by_name.get(text.lower())):
            raise _make_argument_error(
                argument, text, "is not a known language", _suggest_nearest(text, languages_by_name)
            )
        yield from languages


def _suggest_nearest(text: str, candidates: Iterable[str]) -> str:
    unique_names = list(dict.fromkeys(candidates))
    if near := get_close_matches(text.lower(), unique_names, n=3, cutoff=0.5):
        return f"Did you mean {' or '.join(near)}?"
    return f"Use one of {', '.join(sorted(unique_names)[:8])}, …"


def _resolve_path(text: str) -> Path:
    return Path(os.path.realpath(text))


def _compile_path_conditions(
    argument: SearchArgument, values: Iterable[str], roots: SearchRoots, *, cased: bool
) -> Iterator[PatternCondition | NegatedCondition]:
    """Yield the conditions for the values of an argument: any included one, no excluded one."""
    included: list[re.Pattern[str] | PathPart] = []
    excluded: list[re.Pattern[str] | PathPart] = []
    for value in values:
        target, text = (excluded, value[1:].strip()) if value.startswith("!") else (included, value)
        if not text:
            raise make_pattern_error(argument.name, value, "names nothing to exclude")
        target.append(_compile_pattern(argument, text, roots, cased=cased))
    if included:
        yield PatternCondition(tuple(included), cased)
    if excluded:
        yield NegatedCondition(PatternCondition(tuple(excluded), cased))


def _compile_pattern(
    argument: SearchArgument, text: str, roots: SearchRoots, *, cased: bool
) -> re.Pattern[str] | PathPart:
    is_path_filter = argument.matcher != "extension"
    ignore_case = not (cased and is_path_filter)
    # The path of a folder with a slash at its end has the form of an expression.
    compiled = None if roots.contains(text) else compile_regex(argument.name, text, ignore_case=ignore_case)
    if compiled is not None:
        return compiled
    if not is_path_filter:
        return compile_glob(argument.name, text.lower().removeprefix("*").removeprefix("."), ignore_case=True)
    if Path(text).is_absolute():
        return _compile_absolute(argument, roots.make_relative(argument.name, text), ignore_case=ignore_case)
    plain = text.removeprefix("./")
    if is_glob(plain):
        return compile_glob(argument.name, plain, ignore_case=ignore_case)
    plain = plain.replace("\\", "/")
    return PathPart(plain if cased else plain.lower(), argument.matcher == "file" and "/" not in plain)


def _compile_absolute(argument: SearchArgument, path: str | None, *, ignore_case: bool) -> re.Pattern[str]:
    """Compile an absolute path to a pattern for exactly one file, or for all below a folder."""
    if path is None:
        return NO_MATCH_PATTERN
    if is_glob(path):
        return compile_glob(argument.name, path, ignore_case=ignore_case)
    prefix = "" if path == "." else rf"{re.escape(path)}(?:/|\Z)"
    return re.compile(rf"\A{prefix}", re.IGNORECASE if ignore_case else 0)


def _parse_timestamp(argument: SearchArgument, value: Any) -> float:
    if not isinstance(value, str):
        return time() - float(min(value, MAX_AGE_DAYS)) * DAY_SECONDS
    try:
        moment = datetime.fromisoformat(value if _TIMESTAMP_PATTERN.fullmatch(value) else "")
    except ValueError:
        hint = "Write it as 2026-01-31 or 2026-01-31T12:00:00Z."
        raise _make_argument_error(argument, value, "is not a valid date", hint) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _parse_fields(argument: SearchArgument, value: Any) -> Iterator[FieldCondition]:
    if argument.name == "metaJson" and isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise _make_argument_error(argument, value, f"is not JSON: {error}", 'Write {"key": "text"}.') from None
    for entry in (value or [value]) if isinstance(value, list) else [value]:
        if isinstance(entry, str) and argument.name == "meta":
            key, equals, text = entry.partition("=")
            entry = {key.strip(): text.strip() if equals else None}  # noqa: PLW2901 - as an object
        if not isinstance(entry, dict) or not entry or not all(entry):
            raise _make_argument_error(argument, entry, "names no field", "Write key=text, key, or an object.")
        yield from _flatten_fields(entry, "")


def _flatten_fields(entry: Mapping[str, Any], prefix: str) -> Iterator[FieldCondition]:
    for key, value in entry.items():
        match value:
            case dict() if value:
                yield from _flatten_fields(value, f"{prefix}{key}.")
            case list():
                yield FieldCondition(prefix + key, tuple(map(_to_text, value)))
            case None:
                yield FieldCondition(prefix + key, ())
            case _:
                yield FieldCondition(prefix + key, (_to_text(value),))


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _make_argument_error(argument: SearchArgument, value: Any, reason: str, hint: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{argument.name}: {value!r} {reason}",
        hint=hint,
        details=[{"instancePath": f"/{argument.name}", "keyword": argument.matcher, "message": reason}],
    )
