"""Queries of OpenSearch: ranked expressions, filters, and exact names with the local engine's points."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from cleats.contract.errors import ErrorCode, ToolError
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
    make_pattern_error,
)
from cleats.toolsets.code.search import expressions as ex
from cleats.toolsets.code.search.fusion import (
    FILE_NAME_BONUS,
    LAST_PART_BONUS,
    QUALIFIED_NAME_BONUS,
    SAME_CASE_BONUS,
    TEST_PATH_WEIGHT,
)
from cleats.toolsets.code.sharing.opensearch import regexes
from cleats.toolsets.code.sharing.opensearch.column_storage import iterate_suffixes
from cleats.toolsets.code.sharing.opensearch.documents import MAX_VALUE_CHARS, NAME_SEPARATORS
from cleats.toolsets.code.sharing.opensearch.regexes import FRAME_END, FRAME_START, escape_text

OpenSearchQuery: TypeAlias = dict[str, Any]

MATCH_NONE_QUERY: Final[OpenSearchQuery] = {"match_none": {}}
MATCH_ALL_QUERY: Final[OpenSearchQuery] = {"match_all": {}}

MAX_QUERY_CLAUSES: Final = 1000
"""Clauses of a search; OpenSearch rejects more than 1,024 by default."""

BM25_FACTOR: Final = 2.2
"""The factor `k1 + 1` of BM25, which Lucene leaves out and the local index has; constant scores are added to both."""

_MAX_LONG: Final = (1 << 63) - 1
_WILDCARD_CHARS: Final = frozenset("*?\\")
_INEXPRESSIBLE_HINT: Final = "Use a glob, a part of the path, or a simpler expression."


def build_ranked_query(expression: ex.Expression) -> OpenSearchQuery:
    """Build the query for everything that matches an expression, ranked by score."""
    match expression:
        case ex.WordMatch(field, word, boost):
            return {"term": {f"text.{field}": {"value": word, "boost": boost * BM25_FACTOR}}}
        case ex.SequenceMatch(field, words, boost):
            return {"match_phrase": {f"text.{field}": {"query": " ".join(words), "boost": boost * BM25_FACTOR}}}
        case ex.ConstantScore(part, points):
            return {"constant_score": {"filter": build_ranked_query(part), "boost": points}}
        case ex.AnyOf(parts):
            return build_disjunction(map(build_ranked_query, parts))
        case ex.AllOf(parts):
            return _build_conjunction(parts)
        case ex.Negation():
            return _build_conjunction((expression,))


def _build_conjunction(parts: Sequence[ex.Expression]) -> OpenSearchQuery:
    required = [build_ranked_query(part) for part in parts if not isinstance(part, ex.Negation)]
    excluded = [build_ranked_query(part.part) for part in parts if isinstance(part, ex.Negation)]
    clauses: OpenSearchQuery = {"must": required} if required else {"filter": [MATCH_ALL_QUERY]}
    return {"bool": {**clauses, **({"must_not": excluded} if excluded else {})}}


def build_disjunction(queries: Iterable[OpenSearchQuery]) -> OpenSearchQuery:
    """Build the query for documents that match at least one of several queries, which all score."""
    alternatives = list(queries)
    if len(alternatives) == 1:
        return alternatives[0]
    return {"bool": {"should": alternatives, "minimum_should_match": 1}} if alternatives else MATCH_NONE_QUERY


def build_range_query(field: str, ranges: Iterable[tuple[int, int]]) -> OpenSearchQuery:
    """Build the query for documents whose number is in one of several ranges, without their ends."""
    return build_disjunction({"range": {field: {"gte": first, "lt": end}}} for first, end in ranges)


def filter_query(
    query: OpenSearchQuery | None, filters: Sequence[OpenSearchQuery], excluded: Sequence[OpenSearchQuery] = ()
) -> OpenSearchQuery:
    """Build the query for matches of an optional query that pass all filters, unscored."""
    clauses: OpenSearchQuery = {"filter": list(filters)}
    if query is not None:
        clauses["must"] = [query]
    if excluded:
        clauses["must_not"] = list(excluded)
    return {"bool": clauses}


def check_query_size(query: OpenSearchQuery) -> OpenSearchQuery:
    """Return the query if it is not too large for a cluster.

    Raises:
        ToolError: INVALID_REQUEST.
    """
    if _count_clauses(query) <= MAX_QUERY_CLAUSES:
        return query
    raise ToolError(
        ErrorCode.INVALID_REQUEST,
        f"query: has more than {MAX_QUERY_CLAUSES} parts with its filters, more than the OpenSearch cluster accepts.",
        hint="Use fewer words, or fewer values of a filter.",
        details=[{"instancePath": "/query", "keyword": "query", "message": "has too many parts"}],
    )


def _count_clauses(query: Any) -> int:
    if isinstance(query, list):
        return sum(map(_count_clauses, query))
    if not isinstance(query, dict):
        return 0
    is_leaf = not query.keys().isdisjoint({"term", "match_phrase", "wildcard", "regexp", "range"})
    terms = query.get("terms")
    term_count = sum(len(values) for values in terms.values()) if isinstance(terms, dict) else 0
    return is_leaf + term_count + sum(_count_clauses(part) for part in query.values())


def build_filter_query(condition: SearchFilter, alphabet: str | None = None) -> OpenSearchQuery:
    """Build the query for documents that pass a filter; `alphabet` has the other characters than ASCII of their paths.

    Raises:
        ToolError: INVALID_REQUEST, it cannot be expressed in OpenSearch's language.
    """
    return _build_test_query(condition, condition.condition, alphabet)


def _build_test_query(condition: SearchFilter, test: FilterCondition, alphabet: str | None) -> OpenSearchQuery:
    match test:
        case NegatedCondition(inner):
            return {"bool": {"must_not": [_build_test_query(condition, inner, alphabet)]}}
        case MinimumCondition(number):
            minimum = max(0, math.ceil(number))
            within_range = {"range": {f"number.{condition.column}": {"gte": minimum}}}
            return within_range if minimum <= _MAX_LONG else MATCH_NONE_QUERY
        case FlagCondition():
            return {"term": {f"flag.{condition.column}": {"value": True}}}
        case PatternCondition(patterns, cased):
            return build_disjunction(
                _build_pattern_query(condition, pattern, alphabet, cased=cased) for pattern in patterns
            )
        case TextCondition() | FieldCondition() as values:
            return _build_value_query(f"has.{condition.column}", values)


def _build_value_query(field: str, test: TextCondition | FieldCondition) -> OpenSearchQuery:
    match test:
        case TextCondition(texts, "contains", cased):
            return build_disjunction(_build_substring_query(field, text if cased else text.lower()) for text in texts)
        case TextCondition(texts):
            return {"terms": {field: list(texts)}}
        case FieldCondition(key, texts):
            return _build_regexp_query(field, regexes.build_field_expression(key, texts))


def _build_pattern_query(
    condition: SearchFilter, pattern: re.Pattern[str] | PathPart, alphabet: str | None, *, cased: bool
) -> OpenSearchQuery:
    is_path = condition.column == "path"
    if isinstance(pattern, PathPart):
        field = "path.written" if cased else "path.lower"
        if pattern.in_name:
            rest = f"[^{escape_text('/')}{FRAME_START}{FRAME_END}]*"
            return _build_regexp_query(field, f".*{escape_text(pattern.text)}{rest}{FRAME_END}")
        return _build_substring_query(field, pattern.text)
    try:
        expression = regexes.translate_pattern(pattern, alphabet)
    except regexes.InexpressibleError as error:
        reason = f"{error}, which OpenSearch does not support"
        raise make_pattern_error(condition.argument, pattern.pattern, reason, hint=_INEXPRESSIBLE_HINT) from None
    return _build_regexp_query("path.written" if is_path else f"has.{condition.column}", expression)


def _build_substring_query(field: str, text: str) -> OpenSearchQuery:
    if _WILDCARD_CHARS.isdisjoint(text):
        return {"wildcard": {field: {"value": f"*{text}*"}}}
    # Several releases handle escapes in wildcard queries incorrectly.
    return _build_regexp_query(field, f".*{escape_text(text)}.*")


def _build_regexp_query(field: str, expression: str) -> OpenSearchQuery:
    return {"regexp": {field: {"value": expression, "flags": "NONE"}}}


_TEST_FILE_QUERY: Final[OpenSearchQuery] = {"term": {"tests": {"value": True}}}


def build_name_query(name: str, *, case_sensitive: bool, demote_tests: bool) -> OpenSearchQuery | None:
    """Build the query for a name, with the most exact matches first; None if nothing can match."""
    if not name or "\0" in name or len(name) > MAX_VALUE_CHARS:
        return None
    lower_name = name.lower()
    field_points = [
        ("name.whole", name, QUALIFIED_NAME_BONUS + SAME_CASE_BONUS),
        ("name.part", name, LAST_PART_BONUS + SAME_CASE_BONUS),
    ]
    if not case_sensitive:
        field_points += [
            ("name.whole_lower", lower_name, QUALIFIED_NAME_BONUS),
            ("name.part_lower", lower_name, LAST_PART_BONUS),
        ]
        if "." in name:
            field_points.append(("ends", lower_name.removeprefix("./"), FILE_NAME_BONUS))
    queries = [
        query
        for field, value, points in field_points
        for query in _score_term({"term": {field: {"value": value}}}, points, demote_tests=demote_tests)
    ]
    return {"dis_max": {"queries": queries}}


def _score_term(term: OpenSearchQuery, points: float, *, demote_tests: bool) -> list[OpenSearchQuery]:
    if not demote_tests:
        return [{"constant_score": {"filter": term, "boost": points}}]
    non_test_query = {"bool": {"filter": [term], "must_not": [_TEST_FILE_QUERY]}}
    return [
        {"constant_score": {"filter": non_test_query, "boost": points}},
        {"constant_score": {"filter": term, "boost": points * TEST_PATH_WEIGHT}},
    ]


def score_name(hit: dict[str, Any], name: str, *, case_sensitive: bool) -> float:
    """Return the points of a chunk for its own name or that of its file, 0 if neither matches."""
    hit_name, lower_name = str(hit["name"]), name.lower()
    if lower_name in iterate_suffixes(hit_name.lower(), NAME_SEPARATORS):
        has_same_case = hit_name.endswith(name)
        if has_same_case or not case_sensitive:
            is_qualified = len(hit_name) == len(name)
            return (QUALIFIED_NAME_BONUS if is_qualified else LAST_PART_BONUS) + SAME_CASE_BONUS * has_same_case
    is_file_name = not case_sensitive and "." in name
    if is_file_name and lower_name.removeprefix("./") in iterate_suffixes(str(hit["path"]).lower(), "/"):
        return FILE_NAME_BONUS
    return 0.0
