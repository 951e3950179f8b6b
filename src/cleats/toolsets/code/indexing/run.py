"""One build, from the first look at the folder to a published generation.

Full and incremental builds take the same road; an incremental one begins with a copy of the last
catalogue and reads only what has changed. Either way the catalogue says the same in the end.
"""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleats.runtime.blocking import attended
from cleats.toolsets.code.indexing.basis import Basis
from cleats.toolsets.code.indexing.failures import explained
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.indexing.progress import Progress, Report
from cleats.toolsets.code.indexing.report import BuildReport
from cleats.toolsets.code.indexing.survey import Survey
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.generations import Shelf

RARELY: Final = (200_000, 20, 100)
"""How often cycles are looked for: next to all that a build makes is in use until it ends."""

PATIENCE: Final = 0.2
"""Seconds between two attempts to become the builder."""


def build(root: Path, shelf: Shelf, options: Options, report: Report) -> BuildReport:
    """Bring the index of a repository up to date, or make it anew; return what was done.

    Waits while somebody else builds the same index.

    Raises:
        ToolError: the index cannot be written, or this is no folder to index; the last one is as
            it was.
    """
    Repository(root).refuse_too_much()
    started = time.monotonic()
    options = options.at(root)
    with _hurried(), attended(), explained(shelf.folder), alone(shelf, report):
        shelf.collect()
        unused = _restored(shelf, options)
        with Basis.of(shelf, options) as basis:
            done = Build(root, shelf, options, report, basis).run()
        shelf.collect()
    if options.artifacts:
        done.restored_artifacts = not unused
        done.warnings += [unused] if unused else []
    done.seconds = round(time.monotonic() - started, 3)
    return done


@contextmanager
def _hurried() -> Iterator[None]:
    """Spare a build what its libraries do for longer lives: it is a tenth of a small one."""
    # Numpy would start a thread for each core to multiply matrices with, and there are none.
    os.putenv("OPENBLAS_NUM_THREADS", "1")
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _restored(shelf: Shelf, options: Options) -> str:
    """Take in an index that was built elsewhere; return why not, if not."""
    if not options.artifacts:
        return ""
    from cleats.toolsets.code.indexing.artifacts import restore  # noqa: PLC0415 - hardly ever

    return restore(shelf, Path(options.artifacts))


@contextmanager
def alone(shelf: Shelf, report: Report) -> Iterator[None]:
    """Be the only builder of an index; wait for the others."""
    while (lock := shelf.claim()) is None:
        report(Progress("wait", "another build of this repository is running"))
        time.sleep(PATIENCE)
    try:
        yield
    finally:
        lock.release()


class Build(Struct, frozen=True):
    """One build on its way."""

    root: Path
    shelf: Shelf
    options: Options
    report: Report
    basis: Basis

    def run(self) -> BuildReport:
        """Look, and write a generation if there is anything to say."""
        self.report(Progress("look", "looking for files"))
        survey = Survey.of(self.root, self.basis.known, self.options)
        lease = self.basis.lease
        if lease is not None and survey.settled(self.basis, self.options):
            return BuildReport.unchanged(self.basis.meta, lease.name)
        return self._written(survey)

    def _written(self, survey: Survey) -> BuildReport:
        # A look that finds nothing to do must not wait for parsers and engines to load.
        from cleats.toolsets.code.indexing.writing import Writing  # noqa: PLC0415

        with self.shelf.draft() as draft:
            writing = Writing(self.root, self.options, self.report, self.basis, survey, draft)
            meta, files = writing.run()
            self.report(Progress("publish", "writing to the disk"))
            generation = self.shelf.publish(draft)
        return BuildReport.of(
            meta, generation=generation, published=True, files=files, warnings=writing.warnings
        )
