"""The progress of a build."""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:  # a build by a command needs no tools
    from cleats.contract.tools import Context


class BuildProgress(Struct, frozen=True, omit_defaults=True):
    """One step of a build."""

    phase: str
    """`wait`, `look`, `read`, `git`, `lint`, `risk`, `search`, `publish`."""
    message: str
    done: int = 0
    total: int = 0

    @property
    def percent(self) -> int:
        """How much of a full build is done, by the share of each phase in the time of a typical one."""
        start, end = PHASE_PERCENTS.get(self.phase, (0, 0))
        return start + ((end - start) * self.done // self.total if self.total else 0)


PHASE_PERCENTS = {
    "look": (0, 1),
    "read": (1, 75),
    "git": (75, 77),
    "risk": (77, 85),
    "lint": (85, 87),
    "search": (87, 99),
    "publish": (99, 100),
}
"""The percentages of a full build at which each phase begins and ends."""


ProgressCallback: TypeAlias = Callable[[BuildProgress], None]


def create_progress_reporter(context: "Context") -> ProgressCallback:
    """Return a callback that forwards the progress of a build to a caller."""

    def report(progress: BuildProgress) -> None:
        context.progress(
            progress.message, phase=progress.phase, done=progress.done or None, total=progress.total or None
        )

    return report


REPORT_INTERVAL_SECONDS = 0.1
"""Seconds between two reports of one phase; receivers thin them out further."""


class ProgressCounter:
    """Reports the progress and the pace of a phase that processes items one by one."""

    def __init__(self, report: ProgressCallback, phase: str, unit: str, total: int) -> None:
        self._report, self._phase, self._unit, self._total = report, phase, unit, total
        self._first_report: tuple[float, int] | None = None
        self._next_report_at = 0.0

    def report_done(self, done: int) -> None:
        """Report that this many items are done."""
        now = monotonic()
        self._first_report = self._first_report or (now, done)  # libraries were loaded before the first
        if now < self._next_report_at and done < self._total:
            return
        self._next_report_at = now + REPORT_INTERVAL_SECONDS
        message = f"{done:,} of {self._total:,} {self._unit}"
        pace = self._format_pace(done, now - self._first_report[0], done - self._first_report[1])
        self._report(BuildProgress(self._phase, message + pace, done, self._total))

    def _format_pace(self, done: int, elapsed: float, recent: int) -> str:
        if elapsed < 1 or not recent or done == self._total:
            return ""
        rate = recent / elapsed
        return f", {rate:,.0f} a second, {_format_duration((self._total - done) / rate)} left"


def _format_duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class FileTotals(Struct):
    """The number of files by what happened to them."""

    total: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: int = 0


class FileProblem(Struct, frozen=True):
    """A file that was only partly understood."""

    path: str
    problem: str


class BuildReport(Struct, kw_only=True, rename="camel"):
    """The result of a build."""

    generation: str
    published: bool
    """False when the index was up to date, and nothing was written."""
    modes: list[str]
    sqlite: bool
    vectors: bool
    files: FileTotals
    chunks: dict[str, int]
    languages: dict[str, int]
    problems: list[FileProblem]
    problem_count: int
    skipped_reasons: dict[str, int]
    warnings: list[str] = []
    seconds: float = 0.0
    restored_artifacts: bool = False

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any], **facts: Any) -> "BuildReport":
        """Create a report from the metadata of a generation and the facts of the build."""
        counts = meta["counts"]
        return cls(
            modes=list(meta["modes"]),
            sqlite=meta["sqlite"],
            vectors=meta["vectors"],
            chunks=counts["chunks"],
            languages=counts["languages"],
            problems=[FileProblem(*problem) for problem in meta["problems"]],
            problem_count=counts["problems"],
            skipped_reasons=meta["skipped"],
            **facts,
        )

    @classmethod
    def from_unchanged(cls, meta: Mapping[str, Any], generation: str) -> "BuildReport":
        """Create the report of a build that found nothing to do."""
        total = meta["counts"]["files"]
        files = FileTotals(total=total, unchanged=total, skipped=sum(meta["skipped"].values()))
        return cls.from_meta(meta, generation=generation, published=False, files=files)
