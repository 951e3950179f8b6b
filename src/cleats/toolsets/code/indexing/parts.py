"""The parts of a generation that are made from its catalogue."""

import os
from pathlib import Path

from cleats.toolsets.code.indexing.progress import Progress, Report
from cleats.toolsets.code.store import schema


def write(
    folder: Path,
    previous: Path | None,
    report: Report,
    *,
    sqlite: bool,
    workers: int,
) -> None:
    """Make everything that searches read; what has not changed is taken from an earlier one.

    So many workers, or as many as there are cores for 0.
    """
    # Each of these loads a library that only builders and searches need.
    from cleats.toolsets.code.search.parts import write_parts  # noqa: PLC0415

    def progress(message: str, done: int = 0, total: int = 0) -> None:
        report(Progress("search", message, done, total))

    progress("making it searchable")
    count = workers or os.cpu_count() or 1
    write_parts(folder / schema.FILE, folder, previous, progress, count)
    if sqlite:
        from cleats.toolsets.code.search.fts import write_fts  # noqa: PLC0415

        progress("making it searchable with SQLite")
        write_fts(folder)
