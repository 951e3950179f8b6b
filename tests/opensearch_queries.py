"""The query language of an OpenSearch, as far as it is used here: strictly, and with real scores.

Whatever is not known is refused, as OpenSearch refuses it; a field that is not in the mapping is
refused too, though OpenSearch would find nothing in it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

K1, B = 1.2, 0.75
MOST_CLAUSES = 1024
WINDOW = 10_000


class ParsingError(Exception):
    """A request that OpenSearch answers with 400."""

    def __init__(self, kind: str, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.status = kind, reason, status


@dataclass
class Doc:
    """A document as it is searched."""

    id: str
    source: dict[str, Any]
    """What was stored of it."""
    shard: int = 0
    values: dict[str, list[Any]] = field(default_factory=dict)
    """Of keyword, wildcard, long and boolean fields."""
    words: dict[str, list[str]] = field(default_factory=dict)
    vectors: dict[str, list[int]] = field(default_factory=dict)


Score = float | None
"""None for what does not match."""


class Searcher:
    """The documents of one index, or of one of its shards, and their statistics."""

    def __init__(self, types: Mapping[str, str], docs: Iterable[Doc], longest_regex: int) -> None:
        self._types = types
        self._docs = list(docs)
        self._longest_regex = longest_regex
        self._stats: dict[str, tuple[int, float, Counter[str]]] = {}

    def scores(self, query: Any) -> dict[str, float]:
        """Every document that matches, and how well."""
        if _leaves(query) > MOST_CLAUSES:
            raise ParsingError("too_many_nested_clauses", "maxClauseCount is set to 1024")
        match = self._compiled(query)
        found = {doc.id: match(doc) for doc in self._docs}
        return {each: score for each, score in found.items() if score is not None}

    def _compiled(self, query: Any) -> Callable[[Doc], Score]:
        kind, body = only(query, "query")
        try:
            make = getattr(self, f"_{kind}")
        except AttributeError:
            raise ParsingError("parsing_exception", f"unknown query [{kind}]") from None
        made: Callable[[Doc], Score] = make(body)
        return made

    def _match_all(self, body: Any) -> Callable[[Doc], Score]:
        keys(body, set())
        return lambda _doc: 1.0

    def _match_none(self, body: Any) -> Callable[[Doc], Score]:
        keys(body, set())
        return lambda _doc: None

    def _bool(self, body: Any) -> Callable[[Doc], Score]:
        keys(body, {"must", "filter", "should", "must_not", "minimum_should_match"})
        parts = {
            name: [self._compiled(each) for each in body.get(name, [])]
            for name in ("must", "filter", "should", "must_not")
        }
        least = body.get("minimum_should_match", 0 if parts["must"] or parts["filter"] else 1)

        def match(doc: Doc) -> Score:
            if any(each(doc) is not None for each in parts["must_not"]):
                return None
            if any(each(doc) is None for each in parts["filter"]):
                return None
            must = [each(doc) for each in parts["must"]]
            if None in must:
                return None
            should = [score for each in parts["should"] if (score := each(doc)) is not None]
            if parts["should"] and len(should) < least:
                return None
            return sum(score for score in (*must, *should) if score is not None)

        return match

    def _constant_score(self, body: Any) -> Callable[[Doc], Score]:
        keys(body, {"filter", "boost"})
        inner, boost = self._compiled(body["filter"]), float(body.get("boost", 1))
        return lambda doc: None if inner(doc) is None else boost

    def _dis_max(self, body: Any) -> Callable[[Doc], Score]:
        keys(body, {"queries"})
        inner = [self._compiled(each) for each in body["queries"]]
        return lambda doc: max((s for each in inner if (s := each(doc)) is not None), default=None)

    def _term(self, body: Any) -> Callable[[Doc], Score]:
        name, given = self._field(body, {"value", "boost"}, "text", "keyword", "boolean")
        value, boost = given["value"], float(given.get("boost", 1))
        if self._types[name] == "text":
            return self._counted(name, [value], boost)
        kind = bool if self._types[name] == "boolean" else str
        if not isinstance(value, kind):
            raise ParsingError("query_shard_exception", f"{value!r} is no value of {name}")
        return lambda doc: boost if value in doc.values.get(name, ()) else None

    def _terms(self, body: Any) -> Callable[[Doc], Score]:
        name, values = only(body, "terms")
        self._known(name, "keyword")
        wanted = set(values)
        return lambda doc: None if wanted.isdisjoint(doc.values.get(name, ())) else 1.0

    def _range(self, body: Any) -> Callable[[Doc], Score]:
        name, given = self._field(body, {"gte"}, "long")
        least = given["gte"]
        if not isinstance(least, int) or abs(least) >= 1 << 63:
            raise ParsingError("query_shard_exception", f"{least!r} is no long")
        return lambda doc: 1.0 if any(n >= least for n in doc.values.get(name, ())) else None

    def _wildcard(self, body: Any) -> Callable[[Doc], Score]:
        name, given = self._field(body, {"value"}, "wildcard")
        fits = _wildcard(given["value"])
        return lambda doc: 1.0 if any(map(fits, doc.values.get(name, ()))) else None

    def _regexp(self, body: Any) -> Callable[[Doc], Score]:
        name, given = self._field(body, {"value", "flags"}, "wildcard")
        if given.get("flags") != "NONE":
            raise ParsingError("parsing_exception", "the optional operators are not known here")
        if len(given["value"]) > self._longest_regex:
            raise ParsingError("query_shard_exception", "the regex is longer than the maximum")
        fits = lucene(given["value"])
        return lambda doc: 1.0 if any(map(fits, doc.values.get(name, ()))) else None

    def _match_phrase(self, body: Any) -> Callable[[Doc], Score]:
        name, given = self._field(body, {"query", "boost"}, "text")
        if self._types[f"{name}:options"] != "positions":
            raise ParsingError("query_shard_exception", f"{name} was indexed without positions")
        return self._counted(name, given["query"].split(), float(given.get("boost", 1)))

    def _knn(self, body: Any) -> Callable[[Doc], Score]:
        name, given = self._field(body, {"vector", "k", "filter"}, "knn_vector")
        wanted = given["vector"]
        if len(wanted) != int(self._types[f"{name}:dimension"]):
            raise ParsingError("query_shard_exception", "the vector has another dimension")
        if not all(isinstance(each, int) and -128 <= each <= 127 for each in wanted):
            raise ParsingError("query_shard_exception", "the vector is none of bytes")
        inner = self._compiled(given["filter"])
        own = [doc for doc in self._docs if name in doc.vectors and inner(doc) is not None]
        near = {doc.id: (1 + _cosine(wanted, doc.vectors[name])) / 2 for doc in own}
        best = sorted(near, key=lambda each: -near[each])[: given["k"]]
        return _by_id(near, best)

    def _field(self, body: Any, allowed: set[str], *types: str) -> tuple[str, Any]:
        name, given = only(body, "field")
        keys(given, allowed)
        self._known(name, *types)
        return name, given

    def _known(self, name: str, *types: str) -> None:
        if self._types.get(name) not in types:
            raise ParsingError("query_shard_exception", f"{name} is no field of {types}")

    def _counted(self, name: str, words: list[str], boost: float) -> Callable[[Doc], Score]:
        having, usual, frequency = self._statistics(name)
        rarity = sum(
            math.log(1 + (having - n + 0.5) / (n + 0.5)) for n in map(frequency.get, words) if n
        )

        def match(doc: Doc) -> Score:
            text = doc.words.get(name, [])
            ends = range(len(text) - len(words) + 1)
            times = sum(text[at : at + len(words)] == words for at in ends)
            length = _norm(len(text))
            saturated = times / (times + K1 * (1 - B + B * length / usual)) if times else 0
            return boost * rarity * saturated if times else None

        return match

    def _statistics(self, name: str) -> tuple[int, float, Counter[str]]:
        if name not in self._stats:
            texts = [doc.words[name] for doc in self._docs if doc.words.get(name)]
            frequency = Counter(word for text in texts for word in set(text))
            usual = sum(map(len, texts)) / len(texts) if texts else 1.0
            self._stats[name] = (len(texts), usual, frequency)
        return self._stats[name]


def _by_id(scores: Mapping[str, float], best: list[str]) -> Callable[[Doc], Score]:
    kept = set(best)
    return lambda doc: scores[doc.id] if doc.id in kept else None


def _cosine(one: list[int], other: list[int]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def _norm(length: int) -> int:
    """The length of a text as Lucene keeps it: in one byte, rounded down."""
    free = 24
    if length < free:
        return length
    over = length - free
    shift = max(0, over.bit_length() - 4)
    return free + (over >> shift << shift)


def only(body: Any, what: str) -> tuple[str, Any]:
    """The one key of an object, and what it has."""
    if not isinstance(body, dict) or len(body) != 1:
        raise ParsingError("parsing_exception", f"[{what}] malformed: {body!r}")
    [(name, value)] = body.items()
    return name, value


def keys(body: Any, allowed: set[str]) -> None:
    """Refuse what is not known."""
    if not isinstance(body, dict) or not body.keys() <= allowed:
        unknown = sorted(body.keys() - allowed) if isinstance(body, dict) else body
        raise ParsingError("parsing_exception", f"unknown parameter {unknown}")


def _leaves(query: Any) -> int:
    if isinstance(query, list):
        return sum(map(_leaves, query))
    if not isinstance(query, dict):
        return 0
    own = len(query.keys() & {"term", "match_phrase", "wildcard", "regexp", "range"})
    return own + sum(map(_leaves, query.values()))


@lru_cache(maxsize=1000)
def _wildcard(pattern: str) -> Callable[[str], bool]:
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"*": ".*", "?": "."}
    body = "".join(wild.get(each) or re.escape(each[-1]) for each in pieces)
    compiled = re.compile(body, re.DOTALL)
    return lambda value: compiled.fullmatch(value) is not None


_MEANT = re.compile(
    r"\\[^A-Za-z0-9]|\[\^?(?:\\.|[^\]\\])+\]|\(\)|\((?!\?)|[)|.]|[*+?](?![?+])|\{\d+,\d*\}"
    r"|[^\\\[\](){}.*+?|^$~<>&@#\"]",
    re.DOTALL,
)


@lru_cache(maxsize=1000)
def lucene(expression: str) -> Callable[[str], bool]:
    """A function that says whether a value fits an expression of Lucene, whole."""
    at = 0
    while at < len(expression):
        found = _MEANT.match(expression, at)
        if found is None:
            raise ParsingError(
                "parsing_exception", f"no expression from {expression[at : at + 20]!r}"
            )
        at = found.end()
    compiled = re.compile(expression, re.DOTALL)
    return lambda value: compiled.fullmatch(value) is not None
