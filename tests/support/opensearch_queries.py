"""The query language of the fake OpenSearch, as far as it is used here, with real scores.

Anything unknown is rejected as OpenSearch rejects it. A field that is not in the mapping is
rejected too, although OpenSearch would only find nothing in it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tests.support.opensearch_traffic import OpenSearchError

BM25_K1, BM25_B = 1.2, 0.75
MAX_CLAUSES = 1024
MAX_RESULT_WINDOW = 10_000


@dataclass
class IndexedDoc:
    """A document in its searchable form."""

    id: str
    source: dict[str, Any]
    """The stored fields."""
    shard: int = 0
    values: dict[str, list[Any]] = field(default_factory=dict)
    """The values of keyword, wildcard, long and boolean fields."""
    words: dict[str, list[str]] = field(default_factory=dict)
    vectors: dict[str, list[int]] = field(default_factory=dict)


DocScore = float | None
"""The score of a document, None if it does not match."""


class FakeSearcher:
    """The documents of one index or of one of its shards, and their statistics."""

    def __init__(self, types: Mapping[str, str], docs: Iterable[IndexedDoc], max_regex_length: int) -> None:
        self._types = types
        self._docs = list(docs)
        self._max_regex_length = max_regex_length
        self._statistics_by_field: dict[str, tuple[int, float, Counter[str]]] = {}

    def score_documents(self, query: Any) -> dict[str, float]:
        """Return the score of every document that matches."""
        if _count_clauses(query) > MAX_CLAUSES:
            raise OpenSearchError("too_many_nested_clauses", "maxClauseCount is set to 1024")
        score_document = self._compile_query(query)
        scores_by_id = {doc.id: score_document(doc) for doc in self._docs}
        return {doc_id: score for doc_id, score in scores_by_id.items() if score is not None}

    def _compile_query(self, query: Any) -> Callable[[IndexedDoc], DocScore]:
        kind, body = parse_single_key(query, "query")
        try:
            compile_kind = getattr(self, f"_{kind}")
        except AttributeError:
            raise OpenSearchError("parsing_exception", f"unknown query [{kind}]") from None
        matcher: Callable[[IndexedDoc], DocScore] = compile_kind(body)
        return matcher

    def _match_all(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        check_keys(body, set())
        return lambda _doc: 1.0

    def _match_none(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        check_keys(body, set())
        return lambda _doc: None

    def _bool(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        check_keys(body, {"must", "filter", "should", "must_not", "minimum_should_match"})
        parts = {
            name: [self._compile_query(matcher) for matcher in body.get(name, [])]
            for name in ("must", "filter", "should", "must_not")
        }
        min_matches = body.get("minimum_should_match", 0 if parts["must"] or parts["filter"] else 1)

        def score_document(doc: IndexedDoc) -> DocScore:
            if any(matcher(doc) is not None for matcher in parts["must_not"]):
                return None
            if any(matcher(doc) is None for matcher in parts["filter"]):
                return None
            must_scores = [matcher(doc) for matcher in parts["must"]]
            if None in must_scores:
                return None
            should_scores = [score for matcher in parts["should"] if (score := matcher(doc)) is not None]
            if parts["should"] and len(should_scores) < min_matches:
                return None
            return sum(score for score in (*must_scores, *should_scores) if score is not None)

        return score_document

    def _constant_score(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        check_keys(body, {"filter", "boost"})
        inner, boost = self._compile_query(body["filter"]), float(body.get("boost", 1))
        return lambda doc: None if inner(doc) is None else boost

    def _dis_max(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        check_keys(body, {"queries"})
        matchers = [self._compile_query(matcher) for matcher in body["queries"]]
        return lambda doc: max((score for matcher in matchers if (score := matcher(doc)) is not None), default=None)

    def _term(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        name, definition = self._parse_field(body, {"value", "boost"}, "text", "keyword", "boolean")
        value, boost = definition["value"], float(definition.get("boost", 1))
        if self._types[name] == "text":
            return self._score_by_bm25(name, [value], boost)
        kind = bool if self._types[name] == "boolean" else str
        if not isinstance(value, kind):
            raise OpenSearchError("query_shard_exception", f"{value!r} is no value of {name}")
        return lambda doc: boost if value in doc.values.get(name, ()) else None

    def _terms(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        name, values = parse_single_key(body, "terms")
        self._check_field_type(name, "keyword")
        accepted_values = set(values)
        return lambda doc: None if accepted_values.isdisjoint(doc.values.get(name, ())) else 1.0

    def _range(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        name, definition = self._parse_field(body, {"gte", "lt"}, "long")
        for bound in definition.values():
            if not isinstance(bound, int) or abs(bound) >= 1 << 63:
                raise OpenSearchError("query_shard_exception", f"{bound!r} is no long")
        minimum, end = definition["gte"], definition.get("lt", math.inf)
        return lambda doc: 1.0 if any(minimum <= number < end for number in doc.values.get(name, ())) else None

    def _wildcard(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        name, definition = self._parse_field(body, {"value"}, "wildcard")
        matches = _compile_wildcard(definition["value"])
        return lambda doc: 1.0 if any(map(matches, doc.values.get(name, ()))) else None

    def _regexp(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        name, definition = self._parse_field(body, {"value", "flags"}, "wildcard")
        if definition.get("flags") != "NONE":
            raise OpenSearchError("parsing_exception", "the optional operators are not known here")
        if len(definition["value"]) > self._max_regex_length:
            reason = f"the Regexp Query request has exceeded the allowed maximum of [{self._max_regex_length}]"
            raise OpenSearchError("query_shard_exception", f"failed to create query: The length used in {reason}")
        matches = compile_lucene_regex(definition["value"])
        return lambda doc: 1.0 if any(map(matches, doc.values.get(name, ()))) else None

    def _match_phrase(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        name, definition = self._parse_field(body, {"query", "boost"}, "text")
        if self._types[f"{name}:options"] != "positions":
            raise OpenSearchError("query_shard_exception", f"{name} was indexed without positions")
        return self._score_by_bm25(name, definition["query"].split(), float(definition.get("boost", 1)))

    def _knn(self, body: Any) -> Callable[[IndexedDoc], DocScore]:
        name, definition = self._parse_field(body, {"vector", "k", "filter"}, "knn_vector")
        query_vector = definition["vector"]
        if len(query_vector) != int(self._types[f"{name}:dimension"]):
            raise OpenSearchError("query_shard_exception", "the vector has another dimension")
        if not all(isinstance(component, int) and -128 <= component <= 127 for component in query_vector):
            raise OpenSearchError("query_shard_exception", "the vector is none of bytes")
        filter_matcher = self._compile_query(definition["filter"])
        candidates = [doc for doc in self._docs if name in doc.vectors and filter_matcher(doc) is not None]
        similarities = {doc.id: (1 + _compute_cosine(query_vector, doc.vectors[name])) / 2 for doc in candidates}
        best = sorted(similarities, key=lambda component: -similarities[component])[: definition["k"]]
        return _score_by_id(similarities, best)

    def _parse_field(self, body: Any, allowed: set[str], *types: str) -> tuple[str, Any]:
        name, definition = parse_single_key(body, "field")
        check_keys(definition, allowed)
        self._check_field_type(name, *types)
        return name, definition

    def _check_field_type(self, name: str, *types: str) -> None:
        if self._types.get(name) not in types:
            raise OpenSearchError("query_shard_exception", f"{name} is no field of {types}")

    def _score_by_bm25(self, name: str, words: list[str], boost: float) -> Callable[[IndexedDoc], DocScore]:
        doc_count, average_length, doc_frequencies = self._compute_statistics(name)
        rarity = sum(math.log(1 + (doc_count - n + 0.5) / (n + 0.5)) for n in map(doc_frequencies.get, words) if n)

        def score_document(doc: IndexedDoc) -> DocScore:
            text = doc.words.get(name, [])
            starts = range(len(text) - len(words) + 1)
            occurrences = sum(text[start : start + len(words)] == words for start in starts)
            length = _encode_length(len(text))
            saturated = (
                occurrences / (occurrences + BM25_K1 * (1 - BM25_B + BM25_B * length / average_length))
                if occurrences
                else 0
            )
            return boost * rarity * saturated if occurrences else None

        return score_document

    def _compute_statistics(self, name: str) -> tuple[int, float, Counter[str]]:
        if name not in self._statistics_by_field:
            texts = [doc.words[name] for doc in self._docs if doc.words.get(name)]
            frequency = Counter(word for text in texts for word in set(text))
            average_length = sum(map(len, texts)) / len(texts) if texts else 1.0
            self._statistics_by_field[name] = (len(texts), average_length, frequency)
        return self._statistics_by_field[name]


def _score_by_id(scores: Mapping[str, float], best: list[str]) -> Callable[[IndexedDoc], DocScore]:
    best_ids = set(best)
    return lambda doc: scores[doc.id] if doc.id in best_ids else None


def _compute_cosine(one: list[int], other: list[int]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def _encode_length(length: int) -> int:
    """Return the length of a text as Lucene stores it: in one byte, rounded down."""
    free = 24
    if length < free:
        return length
    over = length - free
    shift = max(0, over.bit_length() - 4)
    return free + (over >> shift << shift)


def parse_single_key(body: Any, kind: str) -> tuple[str, Any]:
    """Return the only key of an object and its value."""
    if not isinstance(body, dict) or len(body) != 1:
        raise OpenSearchError("parsing_exception", f"[{kind}] malformed: {body!r}")
    [(name, value)] = body.items()
    return name, value


def check_keys(body: Any, allowed: set[str]) -> None:
    """Reject an object with unknown keys."""
    if not isinstance(body, dict) or not body.keys() <= allowed:
        unknown = sorted(body.keys() - allowed) if isinstance(body, dict) else body
        raise OpenSearchError("parsing_exception", f"unknown parameter {unknown}")


def _count_clauses(query: Any) -> int:
    if isinstance(query, list):
        return sum(map(_count_clauses, query))
    if not isinstance(query, dict):
        return 0
    clause_count = len(query.keys() & {"term", "match_phrase", "wildcard", "regexp", "range"})
    return clause_count + sum(map(_count_clauses, query.values()))


@lru_cache(maxsize=1000)
def _compile_wildcard(pattern: str) -> Callable[[str], bool]:
    tokens = re.findall(r"\\.|.", pattern, re.DOTALL)
    wildcard_patterns = {"*": ".*", "?": "."}
    body = "".join(wildcard_patterns.get(token) or re.escape(token[-1]) for token in tokens)
    compiled = re.compile(body, re.DOTALL)
    return lambda value: compiled.fullmatch(value) is not None


_LUCENE_TOKEN_PATTERN = re.compile(
    r"\\[^A-Za-z0-9]|\[\^?(?:\\.|[^\]\\])+\]|\(\)|\((?!\?)|[)|.]|[*+?](?![?+])|\{\d+,\d*\}"
    r"|[^\\\[\](){}.*+?|^$~<>&@#\"]",
    re.DOTALL,
)


@lru_cache(maxsize=1000)
def compile_lucene_regex(expression: str) -> Callable[[str], bool]:
    """Compile a Lucene expression to a function that tests whether a whole value matches it."""
    position = 0
    while position < len(expression):
        token = _LUCENE_TOKEN_PATTERN.match(expression, position)
        if token is None:
            raise OpenSearchError(
                "query_shard_exception", f"no expression from {expression[position : position + 20]!r}"
            )
        position = token.end()
    try:
        compiled = re.compile(expression, re.DOTALL)
    except re.error as error:
        raise OpenSearchError("query_shard_exception", f"no expression: {error}") from None
    return lambda value: compiled.fullmatch(value) is not None
