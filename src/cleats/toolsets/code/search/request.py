"""A search as it is meant: arguments read, names resolved, patterns compiled, nothing looked up."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache
from time import time
from typing import Any, Final

from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code import kinds
from cleats.toolsets.code.facts import Mode
from cleats.toolsets.code.search.arguments import FILTERS, TOP, Argument
from cleats.toolsets.code.search.filters import (
    Field,
    Filter,
    Holds,
    Least,
    Set,
    Test,
)
from cleats.toolsets.code.search.limits import limits
from cleats.toolsets.code.search.places import Roots, places
from cleats.toolsets.code.search.query import parse
from cleats.toolsets.code.search.query_tree import Query

MODES: Final[Mapping[str, tuple[Mode, ...]]] = {
    "code": ("code",),
    "prose": ("prose", "extracted-prose"),
    "extracted-prose": ("extracted-prose",),
    "records": ("records",),
    "both": ("code", "prose", "extracted-prose"),
    "all": ("code", "prose", "extracted-prose", "records"),
}
DAY: Final = 86_400
EVER: Final = 1e9
"""More days than any commit is old; a number may have more digits than a float can hold."""
NO_ROOTS: Final = Roots()
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)


class Request(Struct, frozen=True, kw_only=True):
    """Everything a search needs to know."""

    text: str
    query: Query
    modes: tuple[Mode, ...] = MODES["both"]
    filters: tuple[Filter, ...] = ()
    branch: str = ""
    cased: bool = False
    """Words match only as they are written."""
    top: int = TOP
    beside: int = 0
    """Hits of each mode but code; 0 is as many as of code."""
    context: int = 0
    output: str = "compact"
    meaning: bool = True
    meaning_asked: bool = False
    """It counts because the caller said so, and not because it does by default."""
    backend: str = "auto"
    explain: bool = False
    tests_lower: bool = False
    """Code of tests ranks lower than other code."""


def read(
    arguments: Mapping[str, Any], *, tests_lower: bool = False, roots: Roots = NO_ROOTS
) -> Request:
    """Take arguments that fit the schema; the rest is what the operator set, and where it is.

    Raises:
        ToolError: INVALID_REQUEST, one of them cannot mean anything; it says which and why.
    """
    text = str(arguments["query"]).strip()
    cased = bool(arguments.get("case"))
    meaning = arguments.get("ann")
    return Request(
        text=text,
        query=parse(text),
        modes=MODES[arguments.get("mode") or "both"],
        filters=tuple(_filters(arguments, roots)),
        branch=str(arguments.get("branch") or ""),
        cased=cased or bool(arguments.get("caseTokens")),
        top=limits(arguments).code,
        beside=limits(arguments).beside,
        context=int(arguments.get("context") or 0),
        output=arguments.get("output") or "compact",
        meaning=True if meaning is None else bool(meaning),
        meaning_asked=bool(meaning),
        backend=arguments.get("backend") or "auto",
        explain=bool(arguments.get("explain")),
        tests_lower=tests_lower,
    )


def _filters(arguments: Mapping[str, Any], roots: Roots) -> Iterator[Filter]:
    cased = bool(arguments.get("case") or arguments.get("caseFile"))
    for row in FILTERS:
        value = arguments.get(row.name)
        if value is None or value is False:
            continue
        if row.name == "risk" and arguments.get("riskTag") is not None:
            continue  # the narrower name counts
        for test in _tests(row, value, roots, cased=cased):
            yield Filter(row.name, row.column, test)


def _tests(row: Argument, value: Any, roots: Roots, *, cased: bool) -> Iterator[Test]:
    match row.matcher:
        case "contains" | "contains-cased":
            yield Holds(_texts(row, value), "contains", row.matcher == "contains-cased")
        case "is" | "member" | "module":
            yield Holds(_texts(row, value), row.matcher, cased=True)
        case "kind":
            yield Holds(tuple(_kinds(row, value)), "is", cased=True)
        case "language":
            yield Holds(tuple(_languages(row, value)), "is", cased=True)
        case "path" | "file" | "extension":
            yield from places(row, _values(row, value), roots, cased=cased)
        case "least":
            yield Least(value)
        case "since":
            yield Least(_moment(row, value))
        case "flag":
            yield Set()
        case "fields":
            yield from _fields(row, value)


def _texts(row: Argument, value: Any) -> tuple[str, ...]:
    """The values in an argument, of which any will do."""
    given = [value] if isinstance(value, str) else list(value)
    if row.separators:
        given = [part for each in given for part in re.split(f"[{row.separators}]", each)]
    texts = tuple(text for each in given if (text := each.strip()))
    if not texts:
        raise _refused(row, value, "says nothing", "Give a value, or leave it out.")
    return texts


def _kinds(row: Argument, value: Any) -> Iterator[str]:
    for text in _texts(row, value):
        if not (meant := kinds.meant(text)):
            known = [*kinds.KINDS, *kinds.ALIASES]
            raise _refused(row, text, "is no kind of declaration", _nearest(text, known))
        yield from meant


def _languages(row: Argument, value: Any) -> Iterator[str]:
    named = _language_names()
    for text in _texts(row, value):
        if not (meant := named.get(text.lower())):
            raise _refused(row, text, "is no language", _nearest(text, list(named)))
        yield from meant


@cache
def _language_names() -> dict[str, list[str]]:
    from cleats.toolsets.code.languages.names import NAMES  # noqa: PLC0415 - a large table

    named: dict[str, list[str]] = {}
    for language, about in NAMES.items():
        for name in dict.fromkeys((language, *about.aliases, about.title.lower())):
            named.setdefault(name, []).append(language)
    return named


def _nearest(text: str, known: Sequence[str]) -> str:
    known = list(dict.fromkeys(known))
    near = get_close_matches(text.lower(), known, n=3, cutoff=0.5) or sorted(known)[:8]
    return f"Did you mean {' or '.join(near)}?"


def _values(row: Argument, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and re.fullmatch(r"!?/.*/[imsu]*", value, re.DOTALL):
        return (value,)  # a regular expression may hold what separates values
    return _texts(row, value)


def _moment(row: Argument, value: Any) -> float:
    if not isinstance(value, str):
        return time() - float(min(value, EVER)) * DAY
    try:
        moment = datetime.fromisoformat(value if _MOMENT.fullmatch(value) else "")
    except ValueError:
        hint = "Write it as 2026-01-31 or 2026-01-31T12:00:00Z."
        raise _refused(row, value, "is no date", hint) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _fields(row: Argument, value: Any) -> Iterator[Field]:
    if row.name == "metaJson" and isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise _refused(row, value, f"is not JSON: {error}", 'Write {"key": "text"}.') from None
    for entry in (value or [value]) if isinstance(value, list) else [value]:
        if isinstance(entry, str) and row.name == "meta":
            key, equals, text = entry.partition("=")
            entry = {key.strip(): text.strip() if equals else None}  # noqa: PLW2901 - as an object
        if not isinstance(entry, dict) or not entry or not all(entry):
            raise _refused(row, entry, "names no field", "Write key=text, key, or an object.")
        yield from _flat(entry, "")


def _flat(entry: Mapping[str, Any], above: str) -> Iterator[Field]:
    for key, value in entry.items():
        match value:
            case dict() if value:
                yield from _flat(value, f"{above}{key}.")
            case list():
                yield Field(above + key, tuple(map(_text, value)))
            case None:
                yield Field(above + key, ())
            case _:
                yield Field(above + key, (_text(value),))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _refused(row: Argument, value: Any, why: str, hint: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{row.name}: {value!r} {why}",
        hint=hint,
        details=[{"instancePath": f"/{row.name}", "keyword": row.matcher, "message": why}],
    )
