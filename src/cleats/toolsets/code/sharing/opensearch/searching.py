"""One search in a cluster: the work of the local engine, in two or three requests.

The cluster filters, ranks by words and finds near vectors; the lists are fused here, by the same code with the same
weights. Distances are recomputed from the stored vectors, so that the cluster's rounding does not matter.
"""

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis.embedding.table import VECTOR_LENGTH
from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.index.columns import Ids, Mask
from cleats.toolsets.code.index.digest import load_word_table
from cleats.toolsets.code.query.request import SearchRequest
from cleats.toolsets.code.search.file_evidence import MAX_OPENED_CHUNKS, FileEvidence, RankedFiles
from cleats.toolsets.code.search.filter_effects import FilterEffect
from cleats.toolsets.code.search.fusion import (
    BODY_KINDS,
    GENERATED_PATH_PATTERN,
    KIND_WEIGHTS,
    TEST_PATH_PATTERN,
    TEST_PATH_WEIGHT,
    BodySizes,
    ChunkIdentity,
    ChunkPoints,
    RankAdjustments,
    mark_duplicates,
    weigh_standing,
)
from cleats.toolsets.code.search.hit_details import SearchHit
from cleats.toolsets.code.search.meaning import ChunkCosines, rank_by_meaning, select_closest
from cleats.toolsets.code.search.ranking import EVERYTHING_LIST, MENTION_BONUS, SearchPlan, add_coverage, plan_search
from cleats.toolsets.code.search.retrieval import (
    MIN_FETCHED_CHUNKS,
    SearchResult,
    choose_listing_number,
    list_in_order,
    score_by_file,
    select_best,
    should_demote_standing,
    should_demote_tests,
    weigh_list,
)
from cleats.toolsets.code.sharing.opensearch import queries
from cleats.toolsets.code.sharing.opensearch.documents import build_file_id
from cleats.toolsets.code.sharing.opensearch.queries import (
    OpenSearchQuery,
    build_filter_query,
    build_range_query,
    build_ranked_query,
    check_query_size,
    filter_query,
)

BACKEND_NAME: Final = "opensearch"
SCORE_KIND: Final = "bm25-fielded"

NEIGHBOUR_FACTOR: Final = 2
"""Neighbours fetched per neighbour needed: the cluster only approximates which are nearest."""

RANKING_FIELDS: Final = (
    "at",
    *(f"hit.{name}" for name in ("file", "ordinal", "path", "kind", "name")),
    *(f"hit.{name}" for name in ("uses", "row", "repeats", "deprecated", "range")),
)
"""Fields that determine the order of a chunk; the rest is fetched for the shown ones only."""

BEST_FIRST_SORT: Final = [{"_score": {"order": "desc"}}, {"at": {"order": "asc"}}]

SearchBody = dict[str, Any]
SearchResponse = Mapping[str, Any]


class ClusterSearch:
    """A search request in a cluster: its queries, and the evaluation of the responses."""

    def __init__(self, request: SearchRequest, meta: Mapping[str, Any]) -> None:
        if request.backend not in ("auto", BACKEND_NAME):
            raise _unsupported_backend_error(request.backend)
        self.request = request
        self._meta = meta
        self._plan: SearchPlan = plan_search(request)
        self._limit = max(MIN_FETCHED_CHUNKS, 3 * request.top)
        self._filters = [build_filter_query(condition, meta.get("alphabet")) for condition in request.filters]
        self._query_vector = self._encode_query()
        self._demotes_tests = should_demote_tests(request, self._plan)
        self._ranked_files: RankedFiles | None = None
        self._opened_ranges: list[tuple[int, int]] = []

    @property
    def file_stems(self) -> list[str]:
        """The stems whose files give points to chunks."""
        return [] if self._plan.is_strict else self._plan.stems

    def use_files(self, evidence: FileEvidence) -> None:
        """Let the words of whole files count; it has the words of `file_stems`."""
        self._plan = add_coverage(self._plan, evidence.measure_rarity)
        self._ranked_files = evidence.rank_files(self._plan.stems, demote_tests=self._demotes_tests)
        first = evidence.table.first_chunks.tolist()
        self._opened_ranges = [(first[file], first[file + 1]) for file in self._ranked_files.opened_numbers]

    @property
    def on_branch(self) -> bool:
        """True if the index was built from the requested branch."""
        branch = str(self._meta.get("branch") or "")
        return not self.request.branch or branch.lower() == self.request.branch.lower()

    def build_searches(self) -> dict[Mode, list[SearchBody]]:
        """Build the searches of each mode: the count, each ranking, and near vectors and names.

        Raises:
            ToolError: INVALID_REQUEST, a query is too large.
        """
        return {mode: self._build_mode_searches(mode) for mode in self.request.modes}

    def _build_mode_searches(self, mode: Mode) -> list[SearchBody]:
        filters: list[OpenSearchQuery] = [{"term": {"mode": {"value": mode}}}, *self._filters]
        demanded, barred_expression = self._plan.required, self._plan.excluded
        required = [*filters, *([build_ranked_query(demanded)] if demanded is not None else [])]
        excluded = [build_ranked_query(barred_expression)] if barred_expression is not None else []
        name_query = queries.build_name_query(
            self._plan.symbol, case_sensitive=self.request.cased, demote_tests=self._demotes_tests
        )
        searches = [_build_count_search(check_query_size(filter_query(None, filters)))]
        searches += [
            self._build_ranked_search(build_ranked_query(ranking.expression), required, excluded)
            | (self._choose_order() if ranking.name == EVERYTHING_LIST else {})
            for ranking in self._plan.lists
        ]
        if self._query_vector is not None and not self._plan.is_strict:
            searches.append(
                self._build_vector_search(self._query_vector, filter_query(None, required, excluded), self._limit)
            )
            if self._opened_ranges:
                opened = [*required, build_range_query("at", self._opened_ranges)]
                body = filter_query(None, opened, excluded)
                searches.append(self._build_vector_search(self._query_vector, body, MAX_OPENED_CHUNKS))
        if name_query is not None:
            searches.append(self._build_ranked_search(name_query, required, excluded))
        return searches

    def _choose_order(self) -> SearchBody:
        """Return the order of a list of everything: what the filters ask about, then paths."""
        number_name = choose_listing_number(self.request)
        key = [] if number_name is None else [{f"listing.{number_name}": {"order": "desc"}}]
        return {"sort": [*key, {"at": {"order": "asc"}}]}

    def _build_ranked_search(
        self, query: OpenSearchQuery, required: Sequence[OpenSearchQuery], excluded: Sequence[OpenSearchQuery]
    ) -> SearchBody:
        return {
            "size": self._limit,
            "track_total_hits": False,
            "track_scores": True,
            "sort": BEST_FIRST_SORT,
            "query": check_query_size(filter_query(query, required, excluded)),
            "_source": list(RANKING_FIELDS),
        }

    def _build_vector_search(
        self, query_vector: NDArray[np.float32], filter_body: OpenSearchQuery, needed: int
    ) -> SearchBody:
        count = NEIGHBOUR_FACTOR * needed
        vector = np.rint(query_vector * VECTOR_LENGTH).clip(-127, 127).astype(int).tolist()
        query = {"knn": {"vector": {"vector": vector, "k": count, "filter": check_query_size(filter_body)}}}
        return {"size": count, "track_total_hits": False, "query": query, "_source": list(RANKING_FIELDS)}

    def _encode_query(self) -> NDArray[np.float32] | None:
        """Return the vector of the query, or None if it is unknown or not wanted."""
        request, table = self.request, load_word_table()
        has_vectors = table is not None and self._meta.get("dimensions")
        if not request.use_meaning or request.cased or not self._plan.words or not has_vectors:
            return None
        assert table is not None  # noqa: S101 - for the type checker
        query_vector = table.encode_query(self._plan.words)
        return query_vector if query_vector.any() else None

    def evaluate_responses(self, responses_by_mode: Mapping[Mode, Sequence[SearchResponse]]) -> SearchResult:
        """Return the result of the search from the responses to its searches."""
        hits: dict[Mode, list[SearchHit]] = {mode: [] for mode in self.request.modes}
        considered = dict.fromkeys(self.request.modes, 0)
        for mode, responses in responses_by_mode.items():
            considered[mode] = int(responses[0]["hits"]["total"]["value"])
            if considered[mode]:
                hits[mode] = self._rank_hits(responses)
        chunks, branch = int(self._meta["chunks"]), self._meta.get("branch")
        return SearchResult(self.request, BACKEND_NAME, SCORE_KIND, hits, chunks, considered, branch)

    def _rank_hits(self, responses: Sequence[SearchResponse]) -> list[SearchHit]:
        candidates = _Candidates(responses)
        vector_index = 1 + len(self._plan.lists)
        rankings = []
        for ranking, response in zip(self._plan.lists, responses[1:vector_index], strict=True):
            if ranking.name == EVERYTHING_LIST:
                rankings.append(list_in_order(ranking, candidates.find_positions(response)))
                continue
            positions, scores = candidates.read_ranking(response)
            weights, order = candidates.kind_weights[positions], candidates.path_order[positions]
            rankings.append(weigh_list(ranking, positions, scores, weights, order))
        opened = np.zeros(0, np.int64)
        if self._query_vector is not None:
            pool = rankings[0].positions if self._plan.is_strict else candidates.find_positions(responses[vector_index])
            cosines, mask = candidates.compare_vectors(self._query_vector), candidates.mask_positions(pool)
            rankings.append(rank_by_meaning(candidates, cosines, mask, self._limit, self._plan))
            if self._opened_ranges and not self._plan.is_strict:
                opened = candidates.find_positions(responses[vector_index + 1]).astype(np.int64)
                opened = select_closest(candidates, cosines, opened)
        bonuses = {
            "symbol": ChunkPoints.from_mapping(
                candidates.score_symbol(self._plan.symbol, case_sensitive=self.request.cased)
            ),
            "mention": ChunkPoints.from_mapping(
                {
                    position: MENTION_BONUS
                    for name in self._plan.mentioned_names
                    for position in candidates.score_symbol(name, case_sensitive=True)
                }
            ),
        }
        if self._ranked_files is not None:
            points = self._ranked_files.compute_points(self._plan.weights.file_rank, self._plan.weights.file_score)
            bonuses["file"] = score_by_file(rankings, opened, candidates.file_numbers.__getitem__, points)
        adjustments = RankAdjustments(
            body_sizes=candidates.body_sizes if self._plan.words else None,
            name_weight=self._plan.weights.body_names,
            line_weight=self._plan.weights.body_lines,
            path_weights=candidates.test_weights if self._demotes_tests else None,
            standing_weights=candidates.standing_weights if should_demote_standing(self._plan) else None,
            mark_duplicates=candidates.find_duplicates if self._plan.words else None,
        )
        order, top = candidates.path_order, self.request.top
        fused = select_best(self._plan, rankings, bonuses, order, limit=top, adjustments=adjustments)
        return [SearchHit(hit, *candidates.locate(hit.position)) for hit in fused]

    def build_filter_searches(self) -> list[tuple[str, SearchBody]]:
        """Build, for each filtering argument, the search that counts its matches alone."""
        by_argument: dict[str, list[OpenSearchQuery]] = {}
        for condition, query in zip(self.request.filters, self._filters, strict=True):
            by_argument.setdefault(condition.argument, []).append(query)
        modes: OpenSearchQuery = {"terms": {"mode": list(self.request.modes)}}
        return [
            (name, _build_count_search(filter_query(None, [modes, *queries]))) for name, queries in by_argument.items()
        ]


def add_filter_counts(
    result: SearchResult, responses_by_argument: Iterable[tuple[str, SearchResponse]]
) -> SearchResult:
    """Return the result with the number of matches of each filter."""
    counts = (FilterEffect(name, int(response["hits"]["total"]["value"])) for name, response in responses_by_argument)
    return replace(result, filter_effects=tuple(counts))


def list_document_ids(
    result: SearchResult, sources_by_key: Mapping[tuple[str, int], SearchResponse]
) -> tuple[list[str], list[str]]:
    """Return the ids of the documents that an answer needs: of its hits, and of their files."""
    hits = [sources_by_key[hit.path, hit.ordinal] for mode_hits in result.hits.values() for hit in mode_hits]
    chunks = [str(item["at"]) for item in hits]
    if result.request.output == "compact" and not result.request.context:
        return chunks, []
    return chunks, [build_file_id(item) for item in dict.fromkeys(hit["hit"]["file"] for hit in hits)]


def _build_count_search(query: OpenSearchQuery) -> SearchBody:
    return {"size": 0, "track_total_hits": True, "query": query}


def collect_sources(responses: Iterable[SearchResponse]) -> dict[tuple[str, int], SearchResponse]:
    """Return the sources of the chunks in responses, by path and ordinal."""
    return {
        (source["hit"]["path"], source["hit"]["ordinal"]): source
        for response in responses
        for hit in response["hits"]["hits"]
        if (source := hit["_source"])
    }


class _Candidates:
    """The chunks of all responses of one mode, numbered from 0."""

    def __init__(self, responses: Sequence[SearchResponse]) -> None:
        self._sources = list(
            {hit_source["at"]: hit_source for hit_source in collect_sources(responses).values()}.values()
        )
        self._numbers = {source["at"]: number for number, source in enumerate(self._sources)}
        hits = [source["hit"] for source in self._sources]
        self.path_order = np.asarray([source["at"] for source in self._sources], np.int64)
        self.kind_weights = np.asarray([KIND_WEIGHTS.get(hit["kind"], 1.0) for hit in hits], np.float32)
        self._test_mask = np.asarray([bool(TEST_PATH_PATTERN.search(hit["path"])) for hit in hits], np.bool_)
        self._repeated_mask = np.asarray([hit["repeats"] for hit in hits], np.bool_)
        self._identities = [ChunkIdentity.from_chunk(hit["name"], hit["path"]) for hit in hits]
        self.test_weights = np.where(self._test_mask, np.float32(TEST_PATH_WEIGHT), np.float32(1))
        uses = np.asarray([hit["uses"] for hit in hits], np.int64)
        bodied = np.asarray([hit["kind"] in BODY_KINDS for hit in hits], np.bool_)
        lines = np.asarray([hit["range"][3] - hit["range"][2] + 1 for hit in hits], np.int64)
        self.body_sizes = BodySizes.from_counts(bodied, uses, lines)
        self.file_numbers = np.asarray([hit["file"] for hit in hits], np.int64)
        generated = np.asarray([bool(GENERATED_PATH_PATTERN.search(hit["path"])) for hit in hits], np.bool_)
        self.standing_weights = weigh_standing(np.asarray([hit["deprecated"] for hit in hits], np.bool_), generated)

    def find_duplicates(self, positions: Ids) -> Mask:
        identities = [self._identities[position] for position in positions.tolist()]
        return mark_duplicates(self._repeated_mask[positions], self._test_mask[positions], identities)

    def locate(self, number: int) -> tuple[str, int]:
        hit = self._sources[number]["hit"]
        return hit["path"], hit["ordinal"]

    def find_positions(self, response: SearchResponse) -> NDArray[np.int32]:
        return np.asarray([self._numbers[hit["_source"]["at"]] for hit in response["hits"]["hits"]], np.int32)

    def read_ranking(self, response: SearchResponse) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        scores = [hit["sort"][0] for hit in response["hits"]["hits"]]
        return self.find_positions(response), np.asarray(scores, np.float32)

    def compare_vectors(self, query_vector: NDArray[np.float32]) -> ChunkCosines:
        rows = [np.frombuffer(b64decode(source["hit"]["row"]), np.int8) for source in self._sources]
        scaled_vector = query_vector / np.float32(VECTOR_LENGTH)
        return ChunkCosines(np.asarray([row.astype(np.float32) @ scaled_vector for row in rows], np.float32))

    def mask_positions(self, positions: NDArray[np.int32]) -> Mask:
        mask = np.zeros(len(self._sources), np.bool_)
        mask[positions] = True
        return mask

    def score_symbol(self, name: str, *, case_sensitive: bool) -> dict[int, float]:
        if not name:
            return {}
        hits = enumerate(source["hit"] for source in self._sources)
        points_by_position = {
            position: queries.score_name(hit, name, case_sensitive=case_sensitive) for position, hit in hits
        }
        return {position: score for position, score in points_by_position.items() if score}


def _unsupported_backend_error(backend: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"backend: {backend!r} is not available; this server searches in OpenSearch.",
        hint="Omit it, or use auto.",
        details=[{"instancePath": "/backend", "keyword": "backend", "message": "is not here"}],
    )
