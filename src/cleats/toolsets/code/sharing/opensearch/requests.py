"""The requests of one search against one index, and the check for an index that was removed."""

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from msgspec.json import encode
from msgspec.structs import replace

from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.query.request import SearchRequest
from cleats.toolsets.code.search import hit_details
from cleats.toolsets.code.search.file_evidence import FileEvidence, FileTable
from cleats.toolsets.code.search.hit_details import HitDetails, HitRow
from cleats.toolsets.code.search.retrieval import SearchResult, loosen_request, needs_loosening
from cleats.toolsets.code.sharing.opensearch.cluster import (
    Cluster,
    ClusterError,
    ClusterRejectedError,
    parse_error_reason,
)
from cleats.toolsets.code.sharing.opensearch.file_words import (
    TABLE_DOCUMENT_ID,
    list_word_ids,
    make_file_evidence,
    read_file_table,
)
from cleats.toolsets.code.sharing.opensearch.searching import (
    ClusterSearch,
    SearchBody,
    add_filter_counts,
    collect_sources,
    list_document_ids,
)


@dataclass(frozen=True, slots=True)
class HitDocuments:
    """The documents of the hits of one answer, and of their files."""

    chunks: Mapping[tuple[str, int], Mapping[str, Any]]
    """Documents by path and ordinal in the file."""
    files: Mapping[int, Mapping[str, Any]]
    """Documents by file number; only if the answer needs them."""
    _lines: dict[int, list[str]] = field(default_factory=dict)

    @property
    def hit_source(self) -> "HitDocuments":
        return self

    @contextmanager
    def open_reader(self) -> Iterator["HitDocuments"]:
        yield self

    def read_row(self, path: str, ordinal: int) -> HitRow:
        """Return a chunk by its path and its ordinal in the file."""
        source = self.chunks[path, ordinal]
        hit = source["hit"]
        identity = (hit["file"], hit["path"], hit["lang"], source["mode"], hit["kind"], hit["name"])
        start, end, first_line, last_line = hit["range"]
        return HitRow(*identity, start, end, first_line, last_line, hit["headline"], ordinal)

    def read_details(self, row: HitRow) -> HitDetails:
        """Return the remaining details of a chunk."""
        hit, file = self._find_hit(row), self.files[row.file]
        risk, authors, lint = (b64decode(hit[name]) if name in hit else None for name in ("risk", "authors", "lint"))
        history = [file[name] for name in ("author", "modified", "commit", "churn")]
        facts, relations = b64decode(hit["facts"]), b64decode(file["facts"])
        return hit_details.unpack_details(facts, risk, authors, lint, relations, *history)

    def read_signature(self, row: HitRow) -> str:
        """Return the signature of a declaration, or empty text."""
        return hit_details.unpack_signature(b64decode(self._find_hit(row)["facts"]))

    def read_lines(self, row: HitRow) -> list[str]:
        """Return the lines of the chunk's file."""
        if row.file not in self._lines:
            self._lines[row.file] = hit_details.unpack_lines(b64decode(self.files[row.file]["text"]))
        return self._lines[row.file]

    def _find_hit(self, row: HitRow) -> Mapping[str, Any]:
        hit: Mapping[str, Any] = self.chunks[row.path, row.id]["hit"]
        return hit


CHUNK_BATCH_SIZE, FILE_BATCH_SIZE = 500, 50
"""Documents that one request fetches: of hits, and of whole files."""


class IndexSearcher:
    """One index of a cluster, queried for one search."""

    def __init__(
        self, cluster: Cluster, index: str, meta: Mapping[str, Any], tables: dict[str, FileTable] | None = None
    ) -> None:
        """Search an index; `tables` keeps the table of files of the last searched index."""
        self._cluster = cluster
        self._index = index
        self._meta = meta
        self._tables = {} if tables is None else tables

    async def search(self, request: SearchRequest) -> tuple[HitDocuments, SearchResult]:
        """Run a search; return the documents of its hits and the result.

        Raises:
            ToolError: INVALID_REQUEST, the cluster does not support the request.
            ClusterError: the cluster cannot be reached, or rejects a request.
        """
        stored, result = await self._search_once(request)
        if not needs_loosening(result):
            return stored, result
        stored, result = await self._search_once(loosen_request(request))
        return stored, replace(result, is_loosened=True)

    async def _search_once(self, request: SearchRequest) -> tuple[HitDocuments, SearchResult]:
        # The first search of a process loads libraries, and translating a pattern may take a while.
        cluster_search = await to_thread.run_sync(ClusterSearch, request, self._meta)
        if not cluster_search.on_branch:
            return HitDocuments({}, {}), cluster_search.evaluate_responses({})
        if stems := cluster_search.file_stems:
            cluster_search.use_files(await self._fetch_file_evidence(stems))
        searches_by_mode = await to_thread.run_sync(cluster_search.build_searches)
        responses_by_mode = await self._send_searches(searches_by_mode)
        result = await to_thread.run_sync(cluster_search.evaluate_responses, responses_by_mode)
        if not any(result.considered.values()):
            filter_searches = cluster_search.build_filter_searches()
            filter_counts = await self._send_msearch([search for _, search in filter_searches])
            names = [name for name, _ in filter_searches]
            return HitDocuments({}, {}), add_filter_counts(result, zip(names, filter_counts, strict=True))
        sources_by_key = collect_sources(item for responses in responses_by_mode.values() for item in responses)
        return await self._fetch_hit_documents(*list_document_ids(result, sources_by_key)), result

    async def _send_searches(
        self, searches_by_mode: Mapping[Mode, Sequence[SearchBody]]
    ) -> dict[Mode, Sequence[Mapping[str, Any]]]:
        responses = await self._send_msearch([search for searches in searches_by_mode.values() for search in searches])
        responses_by_mode: dict[Mode, Sequence[Mapping[str, Any]]] = {}
        for mode, searches in searches_by_mode.items():
            responses_by_mode[mode], responses = responses[: len(searches)], responses[len(searches) :]
        return responses_by_mode

    async def _send_msearch(self, searches: Sequence[SearchBody]) -> list[Mapping[str, Any]]:
        if not searches:
            return []
        lines = b""
        for search in searches:  # word rankings need global term statistics first
            header = {"search_type": "dfs_query_then_fetch"} if "sort" in search else {}
            lines += b"\n".join((encode(header), encode(search), b""))
        answer = await self._cluster.send("POST", f"/{quote(self._index)}/_msearch", ndjson=lines)
        return [_check_response(response) for response in answer["responses"]]

    async def _fetch_hit_documents(self, chunk_ids: Sequence[str], file_ids: Sequence[str]) -> HitDocuments:
        chunk_sources = await self._fetch_documents(chunk_ids, CHUNK_BATCH_SIZE)
        file_sources = await self._fetch_documents(file_ids, FILE_BATCH_SIZE)
        return HitDocuments(
            {(source["hit"]["path"], source["hit"]["ordinal"]): source for source in chunk_sources.values()},
            {int(document_id.rpartition("-")[2]): source["hit"] for document_id, source in file_sources.items()},
        )

    async def _fetch_file_evidence(self, stems: Sequence[str]) -> FileEvidence:
        """Fetch the files that have the words of a question, and the table of all files if it is not known."""
        table = self._tables.get(self._index)
        ids = [*list_word_ids(stems), *([TABLE_DOCUMENT_ID] if table is None else [])]
        sources = await self._fetch_documents(ids, CHUNK_BATCH_SIZE, is_optional=TABLE_DOCUMENT_ID.__ne__)
        documents = {document_id: source["hit"] for document_id, source in sources.items()}
        if table is None:
            table = read_file_table(documents[TABLE_DOCUMENT_ID])
            self._tables.clear()
            self._tables[self._index] = table
        return make_file_evidence(table, documents)

    async def _fetch_documents(
        self, ids: Sequence[str], batch_size: int, is_optional: Callable[[str], bool] = lambda _: False
    ) -> dict[str, Any]:
        sources_by_id: dict[str, Any] = {}
        for start in range(0, len(ids), batch_size):
            body = {"ids": list(ids[start : start + batch_size])}
            answer = await self._cluster.send("POST", f"/{quote(self._index)}/_mget", body)
            for document in answer["docs"]:
                if not document.get("found") and is_optional(document["_id"]):
                    continue
                if not document.get("found"):  # a cluster also reports this if the whole index is gone
                    raise ClusterRejectedError(404, "", f"document {document.get('_id')} is missing")
                sources_by_id[document["_id"]] = document["_source"]
        return sources_by_id


def is_index_gone(error: ClusterError) -> bool:
    """Return whether an error means that the index was removed during the search."""
    return isinstance(error, ClusterRejectedError) and error.status == 404


def _check_response(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a response if it is complete: a partial one would hide results."""
    if "error" in response:
        raise ClusterRejectedError(int(response.get("status", 500)), *parse_error_reason(response))
    shards = response["_shards"]
    if response["timed_out"] or shards["failed"]:
        raise ClusterError(f"{shards['failed']} of {shards['total']} shards did not answer in time")
    return response
