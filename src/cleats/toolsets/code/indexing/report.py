"""What a build has done, and what an index says about itself."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from cleats.toolsets.code.discovery.files import Discovery
from cleats.toolsets.code.store.catalogue import Catalogue

PROBLEMS: Final = 20
SKIPPED: Final = 200
"""How many are named; the rest is counted."""


class Files(Struct):
    """What became of the files."""

    total: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: int = 0


class Problem(Struct, frozen=True):
    """A file that was understood only in part."""

    path: str
    problem: str


class BuildReport(Struct, kw_only=True, rename="camel"):
    """What a build has done."""

    generation: str
    published: bool
    """False when the index was up to date, and nothing was written."""
    modes: list[str]
    sqlite: bool
    vectors: bool
    files: Files
    chunks: dict[str, int]
    languages: dict[str, int]
    problems: list[Problem]
    problem_count: int
    skipped_reasons: dict[str, int]
    warnings: list[str]
    seconds: float
    restored_artifacts: bool = False

    @classmethod
    def of(cls, meta: Mapping[str, Any], **facts: Any) -> "BuildReport":
        """From what is said about a generation, and what was done for it."""
        counts = meta["counts"]
        return cls(
            modes=list(meta["modes"]),
            sqlite=meta["sqlite"],
            vectors=meta["vectors"],
            chunks=counts["chunks"],
            languages=counts["languages"],
            problems=[Problem(*each) for each in meta["problems"]],
            problem_count=counts["problems"],
            skipped_reasons=meta["skipped"],
            **facts,
        )


def described(catalogue: Catalogue, found: Discovery) -> dict[str, Any]:
    """What a generation says about its files and those that it left out."""
    counts = catalogue.counts()
    skipped = Counter(found.counts()) + Counter(counts.skipped)
    left_out = [*found.skipped, *catalogue.left_out()]
    return {
        "counts": {
            "files": counts.files,
            "problems": counts.problems,
            "chunks": counts.chunks,
            "languages": counts.languages,
        },
        "problems": catalogue.problems(PROBLEMS),
        "source": found.source,
        "skipped": dict(sorted(skipped.items())),
        "left_out": sorted(left_out)[:SKIPPED],
    }
