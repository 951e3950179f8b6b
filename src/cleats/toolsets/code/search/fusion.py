"""The fusion of several ranked lists: reciprocal ranks, weighted and added.

Scores of different kinds cannot be compared, ranks can. Duplicates do not push others down: code
that was built six times is not six times as good. The contribution of each part is kept, so a score
can be explained: it is exactly the sum of its parts.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from cleats.toolsets.code.index.columns import Ids, Mask, ShardColumns, sort_unique
from cleats.toolsets.code.query.filters import make_literal_pattern

KIND_WEIGHTS: Final[Mapping[str, float]] = {"module": 0.6, "class": 0.9, "lines": 0.9, "entry": 0.9}
"""Factors for scores in a list, by the kind of the chunk."""

TEST_PATH_WEIGHT: Final = 0.8
"""Factor for the fused score of test code, unless it is configured otherwise or the question is
about tests: tests repeat the names of what they test."""

TEST_PATH_PATTERN: Final = re.compile(
    r"(?:^|/)(?:tests?|testing|specs?|__tests__|testdata)/|(?:^|/)(?:test_|conftest\.)[^/]*$"
    r"|(?:^|/)[tT]est[-_]?(?:[hH]elper|[uU]til)s?\.[^/]*$"
    r"|[._-](?:test|spec)\.[^/.]+$|_test\.[^/.]+$|Tests?\.[^/.]+$"
)

DEPRECATED_WEIGHT, GENERATED_WEIGHT = 0.7, 0.7
"""Factors for the fused score of deprecated and of generated code: what replaces it, or what it was
generated from, has the same words."""

DEPRECATED_PATTERN: Final = rb"\0[^\0]*(?:deprecated|obsolete)[^\0]*\0"
"""Decorators that mark deprecated code: `@Deprecated`, `[Obsolete]`, `@available(*, deprecated)`."""


def is_deprecated_mark(decorator: str) -> bool:
    """Return whether a decorator marks deprecated code."""
    return re.search(DEPRECATED_PATTERN, f"\0{decorator.lower()}\0".encode(errors="surrogatepass")) is not None


DEPRECATED_STEM, GENERATED_STEM = "deprec", "generat"
"""Stems in questions about such code."""

GENERATED_PATH_PATTERN: Final = re.compile(
    r"(?:^|/)(?:generated|__generated__)/|_pb2(?:_grpc)?\.pyi?$|\.pb\.(?:go|h|cc)$|\.g\.(?:cs|dart)$|_generated\.[^/.]+$"
    r"|\.generated\.[^/.]+$|\.designer\.cs$"
)

DUPLICATE_WEIGHT: Final = 0.4
"""Factor for the fused score of a duplicate, so that five of them do not hide the rest."""

_DUPLICATE_SUFFIXES: Final = (*(".d.ts", ".d.mts", ".d.cts", ".pyi"), *(".min.js", "-min.js", ".min.mjs", ".min.cjs"))
_DUPLICATE_FOLDER_PATTERN = re.compile(
    # All alternatives begin with the same character, which is fast on thousands of paths.
    r"/(?:(?:dist|build|out|bundles?|umd|cjs|esm\d*)/.*\.(?:[cm]?js|jsx)$"
    r"|build/lib[^/]*/|(?:vendor|vendored|_vendor|third_party|node_modules)/)"
)

BODY_KINDS: Final = frozenset(("function", "method", "constructor", "property", "constant", "type", "interface"))
"""Kinds whose number of used names shows how much they do; other kinds are not adjusted."""

MAX_BODY_NAMES, MAX_BODY_LINES = 60, 120
"""Names and lines of a body beyond which more do not count. An accessor has few words, so that each of
them weighs much; but a question is about the code that does the work."""

OTHER_BODY_NAMES, OTHER_BODY_LINES = 3, 12
"""Names and lines that chunks of other kinds count as."""

_BUILD_PART_PATTERN = re.compile(
    r"[/.](?:dist|build|out|bundles?|umd|cjs|mjs|jsx?|esm?\d*|legacy|modern"
    r"|development|production|min|d|[cm]?ts)(?=[/.]|$)"
)
"""Parts of a path that distinguish one build of a file from another."""

_NAME_SEPARATOR_TABLE: Final = str.maketrans(":#", "..")
"""Maps all separators between the parts of a qualified name to a dot."""


def is_duplicate_path(path: str) -> bool:
    """Return whether a file repeats others: declaration files, build output, vendored code."""
    return path.endswith(_DUPLICATE_SUFFIXES) or _DUPLICATE_FOLDER_PATTERN.search(f"/{path}") is not None


def weigh_standing(deprecated: Mask, generated: Mask) -> NDArray[np.float32]:
    """Return the factors for the fused scores of chunks, by what they are marked as."""
    weights = np.where(deprecated, np.float32(DEPRECATED_WEIGHT), np.float32(1))
    return weights * np.where(generated, np.float32(GENERATED_WEIGHT), np.float32(1))


class BodySizes(NamedTuple):
    """How much chunks do: logarithms of the names that each uses and of its lines."""

    names: NDArray[np.float32]
    lines: NDArray[np.float32]

    @classmethod
    def from_counts(cls, has_body: Mask, name_counts: NDArray[Any], line_counts: NDArray[Any]) -> "BodySizes":
        names = np.where(has_body, np.minimum(name_counts, MAX_BODY_NAMES), OTHER_BODY_NAMES)
        lines = np.where(has_body, np.clip(line_counts, 1, MAX_BODY_LINES), OTHER_BODY_LINES)
        return cls(np.log1p(names).astype(np.float32), np.log(lines).astype(np.float32))


class ChunkIdentity(NamedTuple):
    """The identity of a chunk, as far as it reveals duplicates."""

    last_part: str
    """The last part of its name: a bundle has the same function under another owner."""
    build_key: str
    """Its whole name, and its file without the parts that distinguish builds."""
    path: str

    @classmethod
    def from_chunk(cls, name: str, path: str) -> "ChunkIdentity":
        build_key = f"{name} {_BUILD_PART_PATTERN.sub('', f'/{path}')}" if name else ""
        return cls(get_last_part(name), build_key, path)


def mark_duplicates(candidates: Mask, of_tests: Mask, identities: Sequence[ChunkIdentity]) -> Mask:
    """Mark the chunks, in order, that duplicate others among them; nothing is a duplicate of a test.

    Only `candidates`, in files that repeat others, can be duplicates. Of several builds whose source
    is absent, the first represents all.
    """
    marked = zip(identities, (candidates | of_tests).tolist(), strict=True)
    originals = {identity.last_part for identity, is_excluded in marked if identity.last_part and not is_excluded}
    first_paths: dict[str, str] = {}

    def is_repeated(identity: ChunkIdentity) -> bool:
        if identity.last_part in originals:
            return True
        return bool(identity.build_key) and first_paths.setdefault(identity.build_key, identity.path) != identity.path

    pairs = zip(candidates.tolist(), identities, strict=True)
    return np.fromiter((is_candidate and is_repeated(identity) for is_candidate, identity in pairs), np.bool_)


def get_last_part(name: str) -> str:
    """Return the last part of a qualified name."""
    return name if " " in name else name.translate(_NAME_SEPARATOR_TABLE).rpartition(".")[2]


QUALIFIED_NAME_BONUS, LAST_PART_BONUS, FILE_NAME_BONUS = 2.0, 1.5, 1.0
"""Bonus points for the whole name, for its last part, and for being in the file of that name. All
are more than any list gives."""

SAME_CASE_BONUS: Final = 2.0
"""Additional points for the same case: a query for `Meta` does not mean a constant `META`."""

_NAME_BOUNDARY_BYTES = rb"\0.:#/"
"""Bytes that may precede a part of a name."""


class ChunkPoints(NamedTuple):
    """Points of chunks for one reason; each chunk is there once."""

    positions: NDArray[np.int64]
    points: NDArray[np.float64]

    @classmethod
    def from_mapping(cls, points_by_position: Mapping[int, float]) -> "ChunkPoints":
        positions = np.fromiter(points_by_position.keys(), np.int64)
        return cls(positions, np.fromiter(points_by_position.values(), np.float64))

    @classmethod
    def from_positions(cls, positions: NDArray[Any], points: float) -> "ChunkPoints":
        """Return the same points for every position."""
        return cls(positions.astype(np.int64), np.full(len(positions), points))

    @classmethod
    def join(cls, parts: Sequence["ChunkPoints"]) -> "ChunkPoints":
        """Join the points of different chunks."""
        if not parts:
            return cls.from_mapping({})
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def select(self, mask: Mask) -> "ChunkPoints":
        """Return the points of some of the chunks, by a mask with a place for each of them."""
        return ChunkPoints(self.positions[mask], self.points[mask])


def score_named_chunks(columns: ShardColumns, name: str, *, cased: bool) -> ChunkPoints:
    """Return the points of the chunks of a shard that have this name, or whose file has it."""
    if not name or "\0" in name:
        return ChunkPoints.join([])
    named = ChunkPoints.join(list(_score_owners(columns, name, cased=cased)))
    files = [] if cased else _find_file_chunks(columns, name)
    if not files:
        return named
    in_files = ChunkPoints.from_positions(np.concatenate(files), FILE_NAME_BONUS)
    return ChunkPoints.join([named, in_files.select(~np.isin(in_files.positions, named.positions))])


def _score_owners(columns: ShardColumns, name: str, *, cased: bool) -> Iterator[ChunkPoints]:
    column = columns.get_column("name")
    if column is None or not column.vocabulary.has_ending(name):
        return  # no name is a whole sentence, and most questions are
    pattern = make_literal_pattern(name, _NAME_BOUNDARY_BYTES, rb"\0", cased=False)
    for number in column.vocabulary.find(pattern, cased=False).tolist():
        qualified_name = column.vocabulary[number]
        is_whole_name = len(qualified_name) == len(name)
        is_same_case = qualified_name.endswith(name)
        if is_same_case or not cased:
            bonus = (QUALIFIED_NAME_BONUS if is_whole_name else LAST_PART_BONUS) + SAME_CASE_BONUS * is_same_case
            yield ChunkPoints.from_positions(column.get_owners(number), bonus)


def _find_file_chunks(columns: ShardColumns, name: str) -> list[Ids]:
    if "." not in name or not columns.file_count:
        return []
    pattern = make_literal_pattern(name.removeprefix("./"), rb"\0/", rb"\0", cased=False)
    files = columns.paths.find(pattern, cased=False)
    return [np.flatnonzero(columns.file_by_chunk == file).astype(np.int32) for file in files]


RANK_CONSTANT: Final = 20
"""Flattens the difference between the first ranks; the usual 60 flattens it too much for lists of
this quality."""


class RankedList(Struct, frozen=True):
    """One list: chunks, best first, with the scores that ordered it."""

    name: str
    weight: float
    positions: Ids
    scores: NDArray[np.float32]


class FusedHit(Struct, frozen=True):
    """One chunk in the fused list."""

    position: int
    parts: dict[str, float] = field(default_factory=dict)
    """The points that each list, each bonus and each adjustment added to the score."""
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)


class RankAdjustments(Struct, frozen=True):
    """Points and factors that do not depend on the words of the query, chunk by chunk."""

    body_sizes: BodySizes | None = None
    name_weight: float = 0.0
    line_weight: float = 0.0
    """Points for how much each chunk does: the part `body`."""
    path_weights: NDArray[np.float32] | None = None
    """Factors for the whole score, by the path of each chunk: the part `place`."""
    standing_weights: NDArray[np.float32] | None = None
    """Factors for the whole score of deprecated and generated code: the part `standing`."""
    mark_duplicates: Callable[[Ids], Mask] | None = None
    """Marks the chunks, given in order, that duplicate others: the part `copy`."""


def fuse_lists(
    ranked_lists: list[RankedList],
    bonuses: Mapping[str, ChunkPoints],
    order: NDArray[np.int64],
    limit: int,
    adjustments: RankAdjustments = RankAdjustments(),  # noqa: B008 - frozen
) -> list[FusedHit]:
    """Return the best chunks of all lists; ties are in the order of files and positions."""
    listed = [item.positions for item in ranked_lists]
    numbered = sort_unique(np.concatenate([*listed, *(bonus.positions for bonus in bonuses.values())]).astype(np.int64))
    in_order = np.argsort(order[numbered])
    positions = numbered[in_order]
    duplicates = np.zeros(len(positions), np.bool_)
    if adjustments.mark_duplicates is not None:
        duplicates = adjustments.mark_duplicates(positions.astype(np.int32))
    places = np.empty(len(positions), np.int64)
    places[in_order] = np.arange(len(positions))

    def find_places(wanted: NDArray[Any]) -> NDArray[np.int64]:
        return places[np.searchsorted(numbered, wanted)]

    placed_lists = [_PlacedList.from_ranked(item, find_places(item.positions), duplicates) for item in ranked_lists]
    placed_bonuses = [_PlacedList(name, find_places(item.positions), item.points) for name, item in bonuses.items()]
    scores = _add_points(placed_lists, len(positions)) + _add_points(placed_bonuses, len(positions))
    changes = dict(_compute_adjustments(adjustments, positions, duplicates, scores))
    scores = sum(changes.values(), scores)
    best = np.argsort(-scores, kind="stable")[:limit]
    hits = {place: FusedHit(position) for place, position in zip(best.tolist(), positions[best].tolist(), strict=True)}
    for placed_list in (*placed_lists, *placed_bonuses):
        placed_list.explain(hits, best)
    for name, change in changes.items():
        for item, points in zip(hits.values(), change[best].tolist(), strict=True):
            if points:
                item.parts[name] = points
    return list(hits.values())


class _PlacedList(Struct, frozen=True):
    """A ranked list or a bonus: the places of its chunks among all chunks, in their order, and their points."""

    name: str
    places: NDArray[np.int64]
    points: NDArray[np.float64]
    ranks: NDArray[np.int64] | None = None
    scores: NDArray[np.float32] | None = None

    @classmethod
    def from_ranked(cls, ranked_list: RankedList, places: NDArray[np.int64], duplicates: Mask) -> "_PlacedList":
        """Assign ranks: the rank of a chunk is its place in the list, not counting the duplicates before it."""
        counted = ~duplicates[places]
        ranks = 1 + np.cumsum(counted) - counted
        return cls(ranked_list.name, places, ranked_list.weight / (RANK_CONSTANT + ranks), ranks, ranked_list.scores)

    def explain(self, hits: Mapping[int, FusedHit], best: NDArray[np.int64]) -> None:
        """Record the points of the best chunks."""
        for row in np.flatnonzero(np.isin(self.places, best)).tolist():
            hit = hits[int(self.places[row])]
            hit.parts[self.name] = float(self.points[row])
            if self.ranks is not None and self.scores is not None:
                hit.ranks[self.name] = int(self.ranks[row])
                hit.scores[self.name] = float(self.scores[row])


def _add_points(placed_lists: Sequence[_PlacedList], count: int) -> NDArray[np.float64]:
    total = np.zeros(count)
    for placed_list in placed_lists:
        total[placed_list.places] += placed_list.points
    return total


def _compute_adjustments(
    adjustments: RankAdjustments,
    positions: NDArray[np.int64],
    duplicates: Mask,
    scores: NDArray[np.float64],
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    if (sizes := adjustments.body_sizes) is not None:
        change = adjustments.name_weight * sizes.names[positions].astype(np.float64)
        change += adjustments.line_weight * sizes.lines[positions].astype(np.float64)
        scores = scores + change
        yield "body", change
    if adjustments.path_weights is not None:
        change = scores * (adjustments.path_weights[positions] - 1)
        scores = scores + change
        yield "place", change
    if adjustments.standing_weights is not None:
        change = scores * (adjustments.standing_weights[positions] - 1)
        scores = scores + change
        yield "standing", change
    if duplicates.any():
        yield "copy", scores * np.where(duplicates, DUPLICATE_WEIGHT - 1, 0.0)
