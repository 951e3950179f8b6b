"""One index of the OpenSearch of the tests: its mapping, its documents, and searches in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from zlib import crc32

from tests.opensearch_queries import WINDOW, Doc, ParsingError, Searcher, keys

PARAMETERS = {
    "text": {"analyzer", "index_options"},
    "keyword": {"ignore_above"},
    "wildcard": {"ignore_above", "doc_values"},
    "long": set[str](),
    "boolean": set[str](),
    "object": {"enabled", "properties"},
    "knn_vector": {"dimension", "data_type", "method"},
}
SETTINGS = {"number_of_shards", "number_of_replicas", "refresh_interval", "max_regex_length", "knn"}
SEARCH = {"size", "query", "sort", "_source", "track_total_hits", "track_scores"}
SORT = [{"_score": {"order": "desc"}}, {"at": {"order": "asc"}}]
NAME = re.compile(r"[a-z0-9][^A-Z\\/*?\"<>| ,#:]*")
LONGEST_TERM = 32_766


@dataclass
class Index:
    """One index: how it was made, and what is in it."""

    name: str
    settings: dict[str, Any]
    mappings: dict[str, Any]
    aliases: set[str]
    types: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    written: dict[str, Doc] = field(default_factory=dict)
    docs: dict[str, Doc] = field(default_factory=dict)
    """What a refresh has made visible."""
    searchers: dict[Any, Searcher] = field(default_factory=dict)

    def map(self, properties: Mapping[str, Any], above: str = "") -> None:
        """Take a mapping in, or refuse it."""
        for name, given in properties.items():
            kind = given.get("type", "object")
            if kind not in PARAMETERS:
                raise ParsingError("mapper_parsing_exception", f"No handler for type [{kind}]")
            if unknown := given.keys() - PARAMETERS[kind] - {"type"}:
                raise ParsingError("mapper_parsing_exception", f"{name}: unknown {unknown}")
            path = f"{above}{name}"
            self.types[path] = kind if given.get("enabled", True) else "stored"
            self.types[f"{path}:options"] = given.get("index_options", "")
            self.limits[path] = given.get("ignore_above", 1 << 31)
            if kind == "knn_vector":
                self._map_vector(path, given)
            if kind == "text" and given.get("analyzer") != "whitespace":
                raise ParsingError("mapper_parsing_exception", f"analyzer of {path} is not known")
            self.map(given.get("properties", {}), f"{path}.")

    def _map_vector(self, path: str, given: Mapping[str, Any]) -> None:
        keys(given["method"], {"name", "engine", "space_type"})
        if not self.settings.get("knn") or given["data_type"] != "byte":
            raise ParsingError("mapper_parsing_exception", "the index is none for vectors of bytes")
        self.types[f"{path}:dimension"] = str(given["dimension"])

    def read(self, name: str, body: Mapping[str, Any]) -> Doc:
        """A document, or why it is none."""
        kept = self.mappings["_source"]["includes"]
        doc = Doc(name, {each: body[each] for each in kept if each in body}, self.shard(name))
        self._read(doc, body, "")
        return doc

    def shard(self, name: str) -> int:
        """Where a document lies."""
        return crc32(name.encode()) % int(self.settings["number_of_shards"])

    def _read(self, doc: Doc, body: Mapping[str, Any], above: str) -> None:
        for name, value in body.items():
            path = f"{above}{name}"
            match self.types.get(path):
                case "object":
                    self._read(doc, value, f"{path}.")
                case "stored":
                    pass
                case "text":
                    doc.words[path] = _checked(value, str).split()
                case "knn_vector":
                    doc.vectors[path] = self._vector(path, value)
                case "keyword" | "wildcard":
                    listed = value if isinstance(value, list) else [value]
                    doc.values[path] = [v for v in listed if len(_term(v)) <= self.limits[path]]
                case "long" | "boolean" as kind:
                    doc.values[path] = [_checked(value, int if kind == "long" else bool)]
                case _:
                    reason = (
                        f"mapping set to strict, dynamic introduction of [{path}] is not allowed"
                    )
                    raise ParsingError("strict_dynamic_mapping_exception", reason)

    def _vector(self, path: str, value: Any) -> list[int]:
        fits = len(value) == int(self.types[f"{path}:dimension"]) and any(value)
        if not fits or not all(isinstance(each, int) and -128 <= each <= 127 for each in value):
            raise ParsingError("mapper_parsing_exception", "no vector of bytes, or one of zeros")
        return list(value)

    def search(self, body: Mapping[str, Any], *, dfs: bool) -> dict[str, Any]:
        """One search, over all shards."""
        keys(body, SEARCH)
        if body.get("size", 10) > WINDOW:
            raise ParsingError("illegal_argument_exception", "Result window is too large")
        if "sort" in body and body["sort"] != SORT:
            raise ParsingError("parsing_exception", "this order is not known here")
        scores: dict[str, float] = {}
        for searcher in self._searchers(dfs=dfs):
            scores |= searcher.scores(body["query"])
        best = sorted(scores, key=lambda each: (-scores[each], self.docs[each].source.get("at", 0)))
        hits = [self._hit(each, scores[each], body) for each in best[: body.get("size", 10)]]
        total = {"total": {"value": len(scores), "relation": "eq"}}
        shards = int(self.settings["number_of_shards"])
        return {
            "took": 1,
            "timed_out": False,
            "_shards": {"total": shards, "successful": shards, "skipped": 0, "failed": 0},
            "hits": {**(total if body.get("track_total_hits") else {}), "hits": hits},
            "status": 200,
        }

    def _searchers(self, *, dfs: bool) -> list[Searcher]:
        """One for all documents when statistics are gathered first, else one for each shard."""
        shards = range(1) if dfs else range(int(self.settings["number_of_shards"]))
        for shard in shards:
            own = [doc for doc in self.docs.values() if dfs or doc.shard == shard]
            made = Searcher(self.types, own, self.settings["max_regex_length"])
            self.searchers.setdefault((dfs, shard), made)
        return [self.searchers[dfs, shard] for shard in shards]

    def _hit(self, name: str, score: float, body: Mapping[str, Any]) -> dict[str, Any]:
        source = self.docs[name].source
        order = {"sort": [score, source.get("at")]} if "sort" in body else {}
        wanted = body.get("_source")
        shown = filtered(source, wanted) if wanted else source
        return {"_index": self.name, "_id": name, "_score": score, "_source": shown, **order}


def _term(value: Any) -> str:
    text: str = _checked(value, str)
    if len(text.encode()) > LONGEST_TERM:
        raise ParsingError("illegal_argument_exception", "immense term")
    return text


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ParsingError("mapper_parsing_exception", f"{value!r} is no {kind.__name__}")
    return value


def filtered(value: Any, patterns: list[str]) -> Any:
    """What is left of an object by paths with stars."""
    if not isinstance(value, dict):
        return value
    made = {}
    for name, each in value.items():
        rest = [p.partition(".")[2] for p in patterns if fnmatchcase(name, p.partition(".")[0])]
        if "" in rest:
            made[name] = each
        elif rest and (inner := filtered(each, rest)) not in ({}, None):
            made[name] = inner
    return made
