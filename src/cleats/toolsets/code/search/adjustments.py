"""Rank adjustments: the weight of a chunk by its kind and path, independent of the query.

Chunks are weighted by their kind, by how much they do, by being in a test, and by duplicating
another chunk that was found. Nothing is excluded: such chunks only rank lower, and the explanation
of the score says why.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.index.columns import Ids, Mask, ShardColumns
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

MIN_BODY_WEIGHT, MAX_BODY_WEIGHT, HALFWAY_NAME_COUNT = 0.8, 4 / 3, 5
"""Factors for the list points of a body that uses no name and of one that uses very many, and the
number of names that is halfway. An accessor has few words, so that each of them weighs much; but a
question is about the code that does the work. Three names give a factor of 1, as for all other
kinds."""

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


def weigh_bodies(name_counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the factors for the list points of bodies, by how many names they use."""
    share = name_counts / (name_counts + HALFWAY_NAME_COUNT)
    return (MIN_BODY_WEIGHT + (MAX_BODY_WEIGHT - MIN_BODY_WEIGHT) * share).astype(np.float32)


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
    """Mark the chunks, in order, that duplicate others among them.

    Of several builds whose source is absent, the first represents all.

    Args:
        candidates: Marks chunks in files that repeat others.
        of_tests: Marks chunks in tests; nothing is a duplicate of a test.
        identities: The identities of the chunks.
    """
    marked = zip(identities, (candidates | of_tests).tolist(), strict=True)
    originals = {identity.last_part for identity, is_excluded in marked if identity.last_part and not is_excluded}
    first_paths: dict[str, str] = {}

    def is_repeated(repeated_identity: ChunkIdentity) -> bool:
        if repeated_identity.last_part in originals:
            return True
        return (
            bool(repeated_identity.build_key)
            and first_paths.setdefault(repeated_identity.build_key, repeated_identity.path) != repeated_identity.path
        )

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


def score_named_chunks(columns: ShardColumns, name: str, *, cased: bool) -> dict[int, float]:
    """Return the points of the chunks of a shard that have this name, or whose file has it."""
    points: dict[int, float] = {}
    if not name or "\0" in name:
        return points
    if not cased:
        for positions in _find_file_chunks(columns, name):
            points |= dict.fromkeys(positions.tolist(), FILE_NAME_BONUS)
    column = columns.get_column("name")
    if column is None:
        return points
    pattern = make_literal_pattern(name, _NAME_BOUNDARY_BYTES, rb"\0", cased=False)
    for number in column.vocabulary.find(pattern, cased=False).tolist():
        qualified_name = column.vocabulary[number]
        is_whole_name = len(qualified_name) == len(name)
        is_same_case = qualified_name.endswith(name)
        if is_same_case or not cased:
            bonus = (QUALIFIED_NAME_BONUS if is_whole_name else LAST_PART_BONUS) + SAME_CASE_BONUS * is_same_case
            points |= dict.fromkeys(column.get_owners(number).tolist(), bonus)
    return points


def _find_file_chunks(columns: ShardColumns, name: str) -> list[Ids]:
    if "." not in name or not columns.file_count:
        return []
    pattern = make_literal_pattern(name.removeprefix("./"), rb"\0/", rb"\0", cased=False)
    files = columns.paths.find(pattern, cased=False)
    return [np.flatnonzero(columns.file_by_chunk == file).astype(np.int32) for file in files]
