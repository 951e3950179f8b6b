"""A fake OpenSearch on a port of this machine, with the part of its REST interface used here.

It keeps documents in memory, finds and ranks them, and is strict: it rejects an unknown setting,
parameter, field or route as OpenSearch does. Documents are searchable only after a refresh. It can
be made to fail. `make engines` runs the same tests against the real server, behind the same port.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.support.opensearch_index import INDEX_NAME_PATTERN, INDEX_SETTINGS, FakeIndex
from tests.support.opensearch_queries import IndexedDoc, check_keys
from tests.support.opensearch_traffic import (
    ClusterRequest,
    ObservedOpenSearch,
    OpenSearchError,
    filter_fields,
    format_error,
    serve_cluster,
)

HOME_VARIABLE = "CLEATS_TEST_OPENSEARCH_HOME"
"""The environment variable with the folder of a real OpenSearch, which is then used in place of the fake."""


@dataclass
class FakeOpenSearch(ObservedOpenSearch):
    """The indexes in memory."""

    indexes: dict[str, FakeIndex] = field(default_factory=dict)

    def route(self, request: ClusterRequest) -> tuple[int, Any]:
        """Return what the cluster answers."""
        status, body = self._route(request)
        patterns = request.query.get("filter_path")
        return status, filter_fields(body, patterns.split(",")) if patterns else body

    def _route(self, request: ClusterRequest) -> tuple[int, Any]:  # noqa: C901, PLR0912 - a table
        target, _, action = request.path.strip("/").partition("/")
        if target == "_aliases":
            return 200, self._update_aliases(request.json)
        match request.method, action:
            case "PUT", "":
                return 200, self._create_index(target, request.json)
            case "GET", "":
                return 200, {
                    described_index.name: _describe_index(described_index)
                    for described_index in self._find_indexes(target)
                }
            case "DELETE", "":
                return 200, self._delete_index(target)
            case "PUT", "_settings":
                return 200, self._change_settings(target, request.json)
            case "PUT", "_mapping":
                return 200, self._set_meta(target, request.json)
            case "GET", "_mapping":
                return 200, {
                    mapped_index.name: {"mappings": mapped_index.mappings}
                    for mapped_index in self._find_indexes(target)
                }
            case "POST", "_refresh":
                for index in self._find_indexes(target):
                    index.docs, index.searchers = dict(index.pending_docs), {}
                return 200, {"_shards": {"total": 1, "successful": 1, "failed": 0}}
            case "GET", "_count":
                [index] = self._find_indexes(target)
                return 200, {"count": len(index.docs), "_shards": {"total": 1, "failed": 0}}
            case "POST", "_bulk":
                return 200, self._index_documents(target, request)
            case "POST", "_msearch":
                return 200, self._search_many(target, request)
            case "POST", "_mget":
                return 200, self._get_documents(target, request.json)
        raise OpenSearchError("illegal_argument_exception", f"no handler found for {request.path}")

    def _find_indexes(self, target: str) -> list[FakeIndex]:
        indexes = self.indexes.values()
        matches = [
            candidate for candidate in indexes if fnmatchcase(candidate.name, target) or target in candidate.aliases
        ]
        if not matches and "*" not in target:
            raise _build_not_found_error(target)
        return matches

    def _create_index(self, name: str, body: Any) -> Any:
        check_keys(body, {"settings", "mappings", "aliases"})
        if not INDEX_NAME_PATTERN.fullmatch(name) or len(name.encode()) > 255:
            raise OpenSearchError("invalid_index_name_exception", name)
        if name in self.indexes or any(name in existing.aliases for existing in self.indexes.values()):
            raise OpenSearchError("resource_already_exists_exception", f"index [{name}] already exists")
        settings, mappings = body["settings"]["index"], body["mappings"]
        check_keys(settings, INDEX_SETTINGS)
        check_keys(mappings, {"dynamic", "_source", "_meta", "properties"})
        index = FakeIndex(name, settings, mappings, set(body.get("aliases", {})))
        index.apply_mapping(mappings["properties"])
        self.indexes[name] = index
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _delete_index(self, name: str) -> Any:
        if name not in self.indexes:
            raise _build_not_found_error(name)
        del self.indexes[name]
        return {"acknowledged": True}

    def _change_settings(self, name: str, body: Any) -> Any:
        check_keys(body["index"], INDEX_SETTINGS)
        [index] = self._find_indexes(name)
        index.settings.update(body["index"])
        index.searchers.clear()
        return {"acknowledged": True}

    def _set_meta(self, name: str, body: Any) -> Any:
        check_keys(body, {"_meta"})
        [index] = self._find_indexes(name)
        index.mappings["_meta"] = body["_meta"]
        return {"acknowledged": True}

    def _update_aliases(self, body: Any) -> Any:
        check_keys(body, {"actions"})
        aliases = {name: set(index.aliases) for name, index in self.indexes.items()}
        effective = False
        for action in body["actions"]:
            [(verb, alias_action)] = action.items()
            check_keys(alias_action, {"index", "alias"} | ({"must_exist"} if verb == "remove" else set()))
            if alias_action["index"] not in aliases:
                raise _build_not_found_error(alias_action["index"])
            index_aliases, alias = aliases[alias_action["index"]], alias_action["alias"]
            if verb == "add":
                index_aliases.add(alias)
            elif alias in index_aliases:
                index_aliases.remove(alias)
            elif alias_action.get("must_exist"):
                raise OpenSearchError("aliases_not_found_exception", f"{alias_action} missing", 404)
            else:
                continue
            effective = True
        if not effective:
            raise OpenSearchError("aliases_not_found_exception", "aliases missing", 404)
        for name, new_aliases in aliases.items():
            self.indexes[name].aliases = new_aliases
        return {"acknowledged": True}

    def _index_documents(self, target: str, request: ClusterRequest) -> Any:
        check_keys(request.query, {"require_alias", "filter_path"})
        lines = iter(request.lines)
        items = [self._index_document(target, request, action, next(lines)) for action in lines]
        has_errors = any(item["index"]["status"] >= 300 for item in items)
        return {"took": 1, "errors": has_errors, "items": items}

    def _index_document(self, target: str, request: ClusterRequest, action: Any, body: Any) -> Any:
        [(_, metadata)] = action.items()
        check_keys(metadata, {"_id"})
        item = {"_index": target, "_id": metadata["_id"]}
        try:
            index, name = self._find_target_index(target, request), metadata["_id"]
            strict = index.mappings.get("dynamic") == "strict"
            index.pending_docs[name] = index.parse_document(name, body) if strict else IndexedDoc(name, body)
        except OpenSearchError as error:
            cause = {"type": error.kind, "reason": error.reason}
            return {"index": {**item, "status": error.status, "error": cause}}
        return {"index": {**item, "status": 201, "result": "created"}}

    def _find_target_index(self, target: str, request: ClusterRequest) -> FakeIndex:
        aliases = {alias for index in self.indexes.values() for alias in index.aliases}
        if "require_alias" in request.query and target not in aliases:
            raise _build_not_found_error(target)
        if target not in aliases | self.indexes.keys():  # OpenSearch creates a missing index on write
            self.indexes[target] = FakeIndex(target, {"number_of_shards": 1}, {}, set())
        [index] = self._find_indexes(target)
        return index

    def _search_many(self, target: str, request: ClusterRequest) -> Any:
        check_keys(request.query, set())
        [index] = self._find_indexes(target)
        responses = []
        for head, body in zip(request.lines[::2], request.lines[1::2], strict=True):
            try:
                check_keys(head, {"search_type"})
                dfs = head.get("search_type") == "dfs_query_then_fetch"
                responses.append(index.search(body, dfs=dfs))
            except OpenSearchError as error:
                if error.kind == "parsing_exception":  # it rejects all searches then
                    raise
                responses.append(format_error(error))
        return {"took": 1, "responses": responses}

    def _get_documents(self, target: str, body: Any) -> Any:
        check_keys(body, {"ids"})
        [index] = self._find_indexes(target)
        documents = [(doc_id, index.pending_docs.get(doc_id)) for doc_id in body["ids"]]
        return {
            "docs": [
                {"_index": index.name, "_id": doc_id, "found": doc is not None}
                | ({"_source": doc.source} if doc else {})
                for doc_id, doc in documents
            ]
        }


def _describe_index(index: FakeIndex) -> dict[str, Any]:
    return {"aliases": {alias: {} for alias in index.aliases}, "mappings": index.mappings}


def _build_not_found_error(name: str) -> OpenSearchError:
    return OpenSearchError("index_not_found_exception", f"no such index [{name}]", 404)


@contextmanager
def run_opensearch() -> Iterator[ObservedOpenSearch]:
    """Run an empty cluster until the block is left: a fake one, or a real one if the environment says so."""
    home = os.environ.get(HOME_VARIABLE)
    if home:
        from tests.engines.opensearch_relay import borrow_cluster  # noqa: PLC0415 - for real servers only

        with borrow_cluster(Path(home)) as relayed:
            yield relayed
        return
    cluster = FakeOpenSearch()
    with serve_cluster(cluster):
        yield cluster
