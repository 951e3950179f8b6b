"""One index of the fake OpenSearch: its mapping, its documents, and searches in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from tests.support.opensearch_queries import MAX_RESULT_WINDOW, FakeSearcher, IndexedDoc, check_keys
from tests.support.opensearch_traffic import OpenSearchError, filter_fields

MAPPING_PARAMETERS = {
    "text": {"analyzer", "index_options"},
    "keyword": {"ignore_above"},
    "wildcard": {"ignore_above", "doc_values"},
    "long": set[str](),
    "boolean": set[str](),
    "object": {"enabled", "properties"},
    "knn_vector": {"dimension", "data_type", "method"},
}
INDEX_SETTINGS = {"number_of_shards", "number_of_replicas", "refresh_interval", "max_regex_length", "knn"}
SEARCH_PARAMETERS = {"size", "query", "sort", "_source", "track_total_hits", "track_scores"}
SCORE_SORT, POSITION_SORT = {"_score": {"order": "desc"}}, {"at": {"order": "asc"}}
INDEX_NAME_PATTERN = re.compile(r"[a-z0-9][^A-Z\\/*?\"<>| ,#:]*")
MAX_TERM_BYTES = 32_766


@dataclass
class FakeIndex:
    """One index: its settings and mapping, and its documents."""

    name: str
    settings: dict[str, Any]
    mappings: dict[str, Any]
    aliases: set[str]
    field_types: dict[str, str] = field(default_factory=dict)
    max_value_lengths: dict[str, int] = field(default_factory=dict)
    pending_docs: dict[str, IndexedDoc] = field(default_factory=dict)
    docs: dict[str, IndexedDoc] = field(default_factory=dict)
    """The documents that a refresh has made visible."""
    searchers: dict[Any, FakeSearcher] = field(default_factory=dict)

    def apply_mapping(self, properties: Mapping[str, Any], prefix: str = "") -> None:
        """Apply a mapping, or raise the error that OpenSearch would return."""
        for name, definition in properties.items():
            kind = definition.get("type", "object")
            if kind not in MAPPING_PARAMETERS:
                raise OpenSearchError("mapper_parsing_exception", f"No handler for type [{kind}]")
            if unknown := definition.keys() - MAPPING_PARAMETERS[kind] - {"type"}:
                raise OpenSearchError("mapper_parsing_exception", f"{name}: unknown {unknown}")
            path = f"{prefix}{name}"
            self.field_types[path] = kind if definition.get("enabled", True) else "stored"
            self.field_types[f"{path}:options"] = definition.get("index_options", "")
            self.max_value_lengths[path] = definition.get("ignore_above", 1 << 31)
            if kind == "knn_vector":
                self._map_vector(path, definition)
            if kind == "text" and definition.get("analyzer") != "whitespace":
                raise OpenSearchError("mapper_parsing_exception", f"analyzer of {path} is not known")
            self.apply_mapping(definition.get("properties", {}), f"{path}.")

    def _map_vector(self, path: str, definition: Mapping[str, Any]) -> None:
        check_keys(definition["method"], {"name", "engine", "space_type"})
        if not self.settings.get("knn") or definition["data_type"] != "byte":
            raise OpenSearchError("mapper_parsing_exception", "the index is none for vectors of bytes")
        self.field_types[f"{path}:dimension"] = str(definition["dimension"])

    def parse_document(self, name: str, body: Mapping[str, Any]) -> IndexedDoc:
        """Parse a document, or raise the error that OpenSearch would return."""
        stored_fields = self.mappings["_source"]["includes"]
        doc = IndexedDoc(
            name,
            {field_name: body[field_name] for field_name in stored_fields if field_name in body},
            self.compute_shard(name),
        )
        self._parse_fields(doc, body, "")
        return doc

    def compute_shard(self, name: str) -> int:
        """Return the shard of a document."""
        return crc32(name.encode()) % int(self.settings["number_of_shards"])

    def _parse_fields(self, doc: IndexedDoc, body: Mapping[str, Any], prefix: str) -> None:
        for name, value in body.items():
            path = f"{prefix}{name}"
            match self.field_types.get(path):
                case "object":
                    self._parse_fields(doc, value, f"{path}.")
                case "stored":
                    pass
                case "text":
                    doc.words[path] = _check_type(value, str).split()
                case "knn_vector":
                    doc.vectors[path] = self._parse_vector(path, value)
                case "keyword" | "wildcard":
                    values = value if isinstance(value, list) else [value]
                    doc.values[path] = [
                        _check_term(term) for term in values if len(term) <= self.max_value_lengths[path]
                    ]
                case "long" | "boolean" as kind:
                    doc.values[path] = [_check_type(value, int if kind == "long" else bool)]
                case _:
                    reason = f"mapping set to strict, dynamic introduction of [{path}] is not allowed"
                    raise OpenSearchError("strict_dynamic_mapping_exception", reason)

    def _parse_vector(self, path: str, value: Any) -> list[int]:
        is_valid = len(value) == int(self.field_types[f"{path}:dimension"]) and any(value)
        if not is_valid or not all(isinstance(component, int) and -128 <= component <= 127 for component in value):
            raise OpenSearchError("mapper_parsing_exception", "no vector of bytes, or one of zeros")
        return list(value)

    def search(self, body: Mapping[str, Any], *, dfs: bool) -> dict[str, Any]:
        """Run one search on all shards."""
        check_keys(body, SEARCH_PARAMETERS)
        if body.get("size", 10) > MAX_RESULT_WINDOW:
            raise OpenSearchError("illegal_argument_exception", "Result window is too large")
        *sort_keys, last_key = body.get("sort", [SCORE_SORT, POSITION_SORT])
        sort_field = next(iter(sort_keys[0])) if sort_keys else ""
        is_known = sort_field in ("", "_score") or self.field_types.get(sort_field) == "long"
        if last_key != POSITION_SORT or not is_known or sort_keys not in ([], [{sort_field: {"order": "desc"}}]):
            raise OpenSearchError("parsing_exception", "this order is not known here")
        scores: dict[str, float] = {}
        for searcher in self._get_searchers(dfs=dfs):
            scores |= searcher.score_documents(body["query"])
        sort_values = {
            doc_id: score if sort_field == "_score" else sum(self.docs[doc_id].values.get(sort_field, ()))
            for doc_id, score in scores.items()
        }
        best = sorted(scores, key=lambda doc_id: (-sort_values[doc_id], self.docs[doc_id].source.get("at", 0)))
        hits = [self._build_hit(doc_id, scores[doc_id], body) for doc_id in best[: body.get("size", 10)]]
        total = {"total": {"value": len(scores), "relation": "eq"}}
        shards = int(self.settings["number_of_shards"])
        return {
            "took": 1,
            "timed_out": False,
            "_shards": {"total": shards, "successful": shards, "skipped": 0, "failed": 0},
            "hits": {**(total if body.get("track_total_hits") else {}), "hits": hits},
            "status": 200,
        }

    def _get_searchers(self, *, dfs: bool) -> list[FakeSearcher]:
        """Return one searcher for all documents if `dfs` is set, else one per shard."""
        shards = range(1) if dfs else range(int(self.settings["number_of_shards"]))
        for shard in shards:
            shard_docs = [doc for doc in self.docs.values() if dfs or doc.shard == shard]
            searcher = FakeSearcher(self.field_types, shard_docs, self.settings["max_regex_length"])
            self.searchers.setdefault((dfs, shard), searcher)
        return [self.searchers[dfs, shard] for shard in shards]

    def _build_hit(self, name: str, score: float, body: Mapping[str, Any]) -> dict[str, Any]:
        source = self.docs[name].source
        order = {"sort": [score, source.get("at")]} if "sort" in body else {}
        source_patterns = body.get("_source")
        visible_source = filter_fields(source, source_patterns) if source_patterns else source
        return {"_index": self.name, "_id": name, "_score": score, "_source": visible_source, **order}


def _check_term(value: Any) -> str:
    text: str = _check_type(value, str)
    if len(text.encode()) > MAX_TERM_BYTES:
        raise OpenSearchError("illegal_argument_exception", "immense term")
    return text


def _check_type(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise OpenSearchError("mapper_parsing_exception", f"{value!r} is no {kind.__name__}")
    return value
