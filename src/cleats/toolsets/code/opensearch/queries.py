"""What a search asks for, in OpenSearch's query language.

An expression and a filter mean here what they mean to the engine of one machine. What cannot be
said exactly is refused: a filter is never left out.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.opensearch import regexes
from cleats.toolsets.code.opensearch.signs import BEGIN, END, plain
from cleats.toolsets.code.search import expressions as ex
from cleats.toolsets.code.search.filters import (
    Field,
    Filter,
    Fits,
    Holds,
    Lacks,
    Least,
    Part,
    Set,
    Test,
)
from cleats.toolsets.code.search.patterns import refused

Query: TypeAlias = dict[str, Any]

NOTHING: Final[Query] = {"match_none": {}}
EVERYTHING: Final[Query] = {"match_all": {}}

MOST_CLAUSES: Final = 1000
"""OpenSearch refuses more than 1,024 of one search, unless its operator wants it otherwise."""

_LARGEST: Final = (1 << 63) - 1
_WILD: Final = frozenset("*?\\")
_HINT: Final = "Say it with a glob, a part of the path, or an expression without that."


def ranked(expression: ex.Expression) -> Query:
    """Whatever matches an expression, by how well."""
    match expression:
        case ex.Word(field, word, boost):
            return {"term": {f"text.{field}": {"value": word, "boost": boost}}}
        case ex.Sequence(field, words, boost):
            return {"match_phrase": {f"text.{field}": {"query": " ".join(words), "boost": boost}}}
        case ex.Bonus(part, points):
            return {"constant_score": {"filter": ranked(part), "boost": points}}
        case ex.AnyOf(parts):
            return any_of(map(ranked, parts))
        case ex.AllOf(parts):
            return _all(parts)
        case ex.Without():
            return _all((expression,))


def _all(parts: Sequence[ex.Expression]) -> Query:
    wanted = [ranked(part) for part in parts if not isinstance(part, ex.Without)]
    barred = [ranked(part.part) for part in parts if isinstance(part, ex.Without)]
    clauses: Query = {"must": wanted} if wanted else {"filter": [EVERYTHING]}
    return {"bool": {**clauses, **({"must_not": barred} if barred else {})}}


def any_of(queries: Iterable[Query]) -> Query:
    """What matches one of several, which all count."""
    listed = list(queries)
    if len(listed) == 1:
        return listed[0]
    return {"bool": {"should": listed, "minimum_should_match": 1}} if listed else NOTHING


def within(query: Query | None, filters: Sequence[Query], barred: Sequence[Query] = ()) -> Query:
    """What matches a query, if there is one, and passes; passing does not count."""
    clauses: Query = {"filter": list(filters)}
    if query is not None:
        clauses["must"] = [query]
    if barred:
        clauses["must_not"] = list(barred)
    return {"bool": clauses}


def checked(query: Query) -> Query:
    """The query, if it is not too large for a cluster.

    Raises:
        ToolError: INVALID_REQUEST.
    """
    if _clauses(query) <= MOST_CLAUSES:
        return query
    raise ToolError(
        ErrorCode.INVALID_REQUEST,
        f"query: has more than {MOST_CLAUSES} parts with its filters, which is too much for the "
        "cluster that this server searches in.",
        hint="Use fewer words, or fewer values of a filter.",
        details=[{"instancePath": "/query", "keyword": "query", "message": "has too many parts"}],
    )


def _clauses(query: Any) -> int:
    if isinstance(query, list):
        return sum(map(_clauses, query))
    if not isinstance(query, dict):
        return 0
    leaf = not query.keys().isdisjoint({"term", "match_phrase", "wildcard", "regexp", "range"})
    terms = query.get("terms")
    listed = sum(len(values) for values in terms.values()) if isinstance(terms, dict) else 0
    return leaf + listed + sum(_clauses(part) for part in query.values())


def passes(wanted: Filter) -> Query:
    """What passes a filter.

    Raises:
        ToolError: INVALID_REQUEST, it cannot be said in OpenSearch's language.
    """
    return _test(wanted, wanted.test)


def _test(wanted: Filter, test: Test) -> Query:
    match test:
        case Lacks(inner):
            return {"bool": {"must_not": [_test(wanted, inner)]}}
        case Least(number):
            return _least(f"number.{wanted.column}", max(0, math.ceil(number)))
        case Set():
            return {"term": {f"flag.{wanted.column}": {"value": True}}}
        case Fits(patterns, cased):
            return any_of(_fits(wanted, pattern, cased=cased) for pattern in patterns)
        case Holds() | Field() as values:
            return _has(f"has.{wanted.column}", values)


def _has(field: str, test: Holds | Field) -> Query:
    match test:
        case Holds(texts, "contains", cased):
            return any_of(_contains(field, text if cased else text.lower()) for text in texts)
        case Holds(texts):
            return {"terms": {field: list(texts)}}
        case Field(key, texts):
            return _regexp(field, regexes.field(key, texts))


def _fits(wanted: Filter, pattern: re.Pattern[str] | Part, *, cased: bool) -> Query:
    of_path = wanted.column == "path"
    if isinstance(pattern, Part):
        field = "path.written" if cased else "path.lower"
        if pattern.in_name:
            rest = f"[^{plain('/')}{BEGIN}{END}]*"
            return _regexp(field, f".*{plain(pattern.text)}{rest}{END}")
        return _contains(field, pattern.text)
    try:
        expression = regexes.lucene(pattern)
    except regexes.InexpressibleError as error:
        why = f"{error}, which OpenSearch has no equal for"
        raise refused(wanted.argument, pattern.pattern, why, hint=_HINT) from None
    return _regexp("path.written" if of_path else f"has.{wanted.column}", expression)


def _least(field: str, number: int) -> Query:
    return {"range": {field: {"gte": number}}} if number <= _LARGEST else NOTHING


def _contains(field: str, text: str) -> Query:
    if _WILD.isdisjoint(text):
        return {"wildcard": {field: {"value": f"*{text}*"}}}
    # Escapes are what wildcard queries of several releases get wrong.
    return _regexp(field, f".*{plain(text)}.*")


def _regexp(field: str, expression: str) -> Query:
    return {"regexp": {field: {"value": expression, "flags": "NONE"}}}
