"""One search in a cluster: what the engine of one machine does, in two or three requests.

The cluster filters, ranks words and finds near vectors; what the lists mean together is worked out
here, by the same code and the same weights. Distances are computed again from the stored vectors,
so that what the cluster rounds does not show.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.dense.measures import LENGTH
from cleats.toolsets.code.facts import Mode
from cleats.toolsets.code.opensearch import naming
from cleats.toolsets.code.opensearch.documents import file_id, unpack
from cleats.toolsets.code.opensearch.queries import Query, checked, passes, ranked, within
from cleats.toolsets.code.search.digest import word_table
from cleats.toolsets.code.search.emptiness import Passing
from cleats.toolsets.code.search.fusion import Ranked, Standing
from cleats.toolsets.code.search.rank import MENTIONED, Plan, plan
from cleats.toolsets.code.search.request import Request
from cleats.toolsets.code.search.retrieval import (
    FETCHED,
    Found,
    Hit,
    best,
    nearest,
    tests_lower,
    weighed,
)
from cleats.toolsets.code.search.standing import (
    BODIED,
    KINDS,
    OF_TESTS,
    TESTS,
    Called,
    copies,
    worth,
)
from cleats.toolsets.code.search.vocabulary import Ids, Mask

NAME: Final = "opensearch"
KIND: Final = "bm25-fielded"

NEARER: Final = 2
"""Times as many neighbours as needed are fetched: the cluster guesses which are nearest."""

LIGHT: Final = (
    "at",
    *(f"hit.{name}" for name in ("file", "ordinal", "path", "kind", "name")),
    *(f"hit.{name}" for name in ("uses", "row", "repeats")),
)
"""What orders a chunk; all the rest is fetched for those that are shown."""

BEST_FIRST: Final = [{"_score": {"order": "desc"}}, {"at": {"order": "asc"}}]

Search = dict[str, Any]
Response = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """The searches of one mode, in the order of their answers."""

    count: Search
    rankings: tuple[Search, ...]
    near: Search | None
    called: Search | None

    def listed(self) -> list[Search]:
        return [self.count, *self.rankings, *filter(None, (self.near, self.called))]


class Searching:
    """A request on its way through a cluster: what to ask, and what the answers mean."""

    def __init__(self, request: Request, meta: Mapping[str, Any]) -> None:
        if request.backend not in ("auto", NAME):
            raise _only_here(request.backend)
        self.request = request
        self._meta = meta
        self._plan: Plan = plan(request)
        self._limit = max(FETCHED, 3 * request.top)
        self._filters = [passes(each) for each in request.filters]
        self._direction = self._meaning()
        self._lower = tests_lower(request, self._plan)

    @property
    def on_branch(self) -> bool:
        """Whether the index is of the branch that is asked for."""
        branch = str(self._meta.get("branch") or "")
        return not self.request.branch or branch.lower() == self.request.branch.lower()

    def asked(self) -> dict[Mode, Asked]:
        """What to ask for each mode.

        Raises:
            ToolError: INVALID_REQUEST, it is too much.
        """
        return {mode: self._asked(mode) for mode in self.request.modes}

    def _asked(self, mode: Mode) -> Asked:
        passing: list[Query] = [{"term": {"mode": {"value": mode}}}, *self._filters]
        wanted, barred = self._plan.demanded, self._plan.barred
        left = [*passing, *([ranked(wanted)] if wanted is not None else [])]
        gone = [ranked(barred)] if barred is not None else []
        limit, symbol = self._limit, self._plan.symbol
        called = naming.called(symbol, cased=self.request.cased, tests_lower=self._lower)
        return Asked(
            {"size": 0, "track_total_hits": True, "query": checked(within(None, passing))},
            tuple(
                _listing(within(ranked(each.expression), left, gone), limit)
                for each in self._plan.rankings
            ),
            self._nearest(within(None, left, gone)),
            _listing(within(called, left, gone), limit) if called is not None else None,
        )

    def _nearest(self, left: Query) -> Search | None:
        if self._direction is None or self._plan.strict:
            return None
        count = NEARER * self._limit
        vector = np.rint(self._direction * LENGTH).clip(-127, 127).astype(int).tolist()
        query = {"knn": {"vector": {"vector": vector, "k": count, "filter": checked(left)}}}
        return {"size": count, "track_total_hits": False, "query": query, "_source": list(LIGHT)}

    def _meaning(self) -> NDArray[np.float32] | None:
        """The direction that the question points to; None when nobody knows, or asks."""
        request, table = self.request, word_table()
        known = table is not None and self._meta.get("dimensions")
        if not request.meaning or request.cased or not self._plan.words or not known:
            return None
        assert table is not None  # noqa: S101 - for the type checker
        direction = table.encode_query(self._plan.words)
        return direction if direction.any() else None

    def found(self, answers: Mapping[Mode, Sequence[Response]]) -> Found:
        """What was found, from the answers to what was asked."""
        hits: dict[Mode, list[Hit]] = {mode: [] for mode in self.request.modes}
        considered = dict.fromkeys(self.request.modes, 0)
        for mode, responses in answers.items():
            considered[mode] = int(responses[0]["hits"]["total"]["value"])
            if considered[mode]:
                hits[mode] = self._hits(self._asked(mode), responses)
        chunks, branch = int(self._meta["chunks"]), self._meta.get("branch")
        return Found(self.request, NAME, KIND, hits, chunks, considered, branch)

    def _hits(self, asked: Asked, responses: Sequence[Response]) -> list[Hit]:
        known = _Candidates(responses)
        lists = responses[1 : 1 + len(asked.rankings)]
        rankings = []
        for ranking, response in zip(self._plan.rankings, lists, strict=True):
            positions, scores = known.ranked(response)
            weights, order = known.weights[positions], known.order[positions]
            rankings.append(weighed(ranking, positions, scores, weights, order))
        if self._direction is not None:
            near = responses[1 + len(lists) : 2 + len(lists)]
            pool = rankings[0].positions if asked.near is None else known.positions(near)
            rankings.append(known.nearest(pool, self._direction, self._limit))
        called = {
            "symbol": known.called(self._plan.symbol, cased=self.request.cased),
            "mention": known.mentioned(self._plan.mentioned),
        }
        standing = Standing(
            worth=known.worth if self._plan.words else None,
            place=known.lowered if self._lower else None,
            copies=known.copies if self._plan.words else None,
        )
        order, top = known.order, self.request.top
        fused = best(self._plan, rankings, called, order, most=top, standing=standing)
        return [Hit(each, *known.place(each.position)) for each in fused]

    def alone(self) -> list[tuple[str, Search]]:
        """What each argument that filters lets through by itself."""
        by_argument: dict[str, list[Query]] = {}
        for each, query in zip(self.request.filters, self._filters, strict=True):
            by_argument.setdefault(each.argument, []).append(query)
        modes: Query = {"terms": {"mode": list(self.request.modes)}}
        return [
            (name, {"size": 0, "track_total_hits": True, "query": within(None, [modes, *queries])})
            for name, queries in by_argument.items()
        ]


def passing(found: Found, counted: Iterable[tuple[str, Response]]) -> Found:
    """The answer with what each filter lets through."""
    listed = (Passing(name, int(each["hits"]["total"]["value"])) for name, each in counted)
    return replace(found, passing=tuple(listed))


def shown(found: Found, sources: Mapping[tuple[str, int], Response]) -> tuple[list[str], list[str]]:
    """The ids of the documents that an answer needs: of its hits, and of their files."""
    hits = [sources[hit.path, hit.ordinal] for listed in found.hits.values() for hit in listed]
    chunks = [str(each["at"]) for each in hits]
    if found.request.output == "compact" and not found.request.context:
        return chunks, []
    return chunks, [file_id(each) for each in dict.fromkeys(hit["hit"]["file"] for hit in hits)]


def _listing(query: Query, limit: int) -> Search:
    return {
        "size": limit,
        "track_total_hits": False,
        "track_scores": True,
        "sort": BEST_FIRST,
        "query": checked(query),
        "_source": list(LIGHT),
    }


def sources(responses: Iterable[Response]) -> dict[tuple[str, int], Response]:
    """What answers say of chunks, by their files and their numbers in them."""
    return {
        (source["hit"]["path"], source["hit"]["ordinal"]): source
        for response in responses
        for each in response["hits"]["hits"]
        if (source := each["_source"])
    }


class _Candidates:
    """The chunks of all answers of one mode, numbered from 0."""

    def __init__(self, responses: Sequence[Response]) -> None:
        self._sources = list({s["at"]: s for s in sources(responses).values()}.values())
        self._numbers = {source["at"]: number for number, source in enumerate(self._sources)}
        hits = [source["hit"] for source in self._sources]
        self.order = np.asarray([source["at"] for source in self._sources], np.int64)
        self.weights = np.asarray([KINDS.get(hit["kind"], 1.0) for hit in hits], np.float32)
        self._of_tests = np.asarray([bool(OF_TESTS.search(hit["path"])) for hit in hits], np.bool_)
        self._copied = np.asarray([hit["repeats"] for hit in hits], np.bool_)
        self._called = [Called.of(hit["name"], hit["path"]) for hit in hits]
        self.lowered = np.where(self._of_tests, np.float32(TESTS), np.float32(1))
        uses = np.asarray([hit["uses"] for hit in hits], np.int64)
        bodied = np.asarray([hit["kind"] in BODIED for hit in hits], np.bool_)
        self.worth = np.where(bodied, worth(uses), np.float32(1))

    def copies(self, positions: Ids) -> Mask:
        called = [self._called[at] for at in positions.tolist()]
        return copies(self._copied[positions], self._of_tests[positions], called)

    def place(self, number: int) -> tuple[str, int]:
        hit = self._sources[number]["hit"]
        return hit["path"], hit["ordinal"]

    def positions(self, responses: Sequence[Response]) -> NDArray[np.int32]:
        found = [each for response in responses for each in response["hits"]["hits"]]
        return np.asarray([self._numbers[each["_source"]["at"]] for each in found], np.int32)

    def ranked(self, response: Response) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        scores = [each["sort"][0] for each in response["hits"]["hits"]]
        return self.positions([response]), np.asarray(scores, np.float32)

    def nearest(
        self, pool: NDArray[np.int32], direction: NDArray[np.float32], limit: int
    ) -> Ranked:
        rows = [np.frombuffer(unpack(self._sources[at]["hit"]["row"]), np.int8) for at in pool]
        scaled = direction / np.float32(LENGTH)
        cosines = np.zeros(len(self._sources), np.float32)
        cosines[pool] = [row.astype(np.float32) @ scaled for row in rows]
        within = np.zeros(len(self._sources), np.bool_)
        within[pool] = True
        return nearest(self, cosines, within, limit, strict=False)

    def mentioned(self, names: Iterable[str]) -> dict[int, float]:
        return {at: MENTIONED for name in names for at in self.called(name, cased=True)}

    def called(self, name: str, *, cased: bool) -> dict[int, float]:
        if not name:
            return {}
        hits = enumerate(source["hit"] for source in self._sources)
        points = {at: naming.points(hit, name, cased=cased) for at, hit in hits}
        return {at: each for at, each in points.items() if each}


def _only_here(backend: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"backend: {backend!r} is not to be had; this server searches in OpenSearch.",
        hint="Leave it out, or say auto.",
        details=[{"instancePath": "/backend", "keyword": "backend", "message": "is not here"}],
    )
