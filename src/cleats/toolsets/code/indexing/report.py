"""What a build has done: the value that goes from the builder to the caller."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


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
    warnings: list[str] = []
    seconds: float = 0.0
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

    @classmethod
    def unchanged(cls, meta: Mapping[str, Any], generation: str) -> "BuildReport":
        """Of a build that found nothing to do."""
        total = meta["counts"]["files"]
        files = Files(total=total, unchanged=total, skipped=sum(meta["skipped"].values()))
        return cls.of(meta, generation=generation, published=False, files=files)
