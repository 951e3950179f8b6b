"""One build, from the discovery of the files to a published generation.

Full and incremental builds follow the same path; an incremental one starts with a copy of the last
catalogue and reads only what has changed. Either way the resulting catalogue is the same.
"""

import errno
import gc
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.processes.blocking import shared_supervisor
from cleats.toolsets.code.index.changes import BuildInputs, FileSurvey
from cleats.toolsets.code.index.generations import PARSED_FOLDER, GenerationStore
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.index.progress import BuildProgress, BuildReport, ProgressCallback
from cleats.toolsets.code.repository import Repository

DISK_FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
PERMISSION_ERRNOS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
MISSING_FOLDER_ERRNOS: Final = frozenset({errno.ENOTDIR, errno.ENOENT, errno.EEXIST})

_DISK_FULL_PATTERN = re.compile(rf"No space left on device|\(os error ({'|'.join(map(str, DISK_FULL_ERRNOS))})\)")


@contextmanager
def explain_disk_errors(folder: Path) -> Iterator[None]:
    """Translate disk errors in a block into tool errors.

    Raises:
        ToolError: the disk is full, or the cache cannot be written.
    """
    try:
        yield
    except Exception as error:
        reason = _explain_error(error, folder)
        if reason is None:
            raise
        raise ToolError(
            ErrorCode.INTERNAL,
            f"The index in {folder} cannot be written: {reason}. An earlier index, if there is one, is still used.",
            hint="Free some space or allow writing, or set CLEATS_CACHE_DIR to another folder.",
            retryable=True,
        ) from error


def _explain_error(error: Exception, folder: Path) -> str | None:
    """Return how the disk caused an error; None when it did not."""
    message = str(error)
    if isinstance(error, OSError):
        if error.errno in DISK_FULL_ERRNOS:
            return "the disk is full"
        path = Path(error.filename) if isinstance(error.filename, str | Path) else None
        is_parent = path is not None and folder.is_relative_to(path)
        if error.errno in PERMISSION_ERRNOS and (is_parent or (path is not None and path.is_relative_to(folder))):
            return "that is not permitted"
        if error.errno in MISSING_FOLDER_ERRNOS and is_parent:
            return f"{error.filename}: {error.strerror}"
    # Engines raise their own types, and are not imported where nothing was written.
    match type(error).__module__, type(error).__name__:
        case "apsw", "FullError":
            return "the disk is full"
        case "apsw", "IOError" | "CantOpenError" | "ReadOnlyError":
            return message
    return "the disk is full" if _DISK_FULL_PATTERN.search(message) else None


GC_THRESHOLDS: Final = (200_000, 20, 100)
"""Of the garbage collector: nearly everything a build allocates is in use until it ends."""

LOCK_RETRY_SECONDS: Final = 0.2
"""Seconds between two attempts to become the builder."""


def build_index(root: Path, store: GenerationStore, options: BuildOptions, report: ProgressCallback) -> BuildReport:
    """Update the index of a repository, or build it from scratch; return a report.

    Waits while another process builds the same index.

    Raises:
        ToolError: the index cannot be written, or the folder cannot be indexed; the last index is
            unchanged.
    """
    Repository(root).reject_unsuitable_root()
    started = time.monotonic()
    options = options.for_repository(root)
    with _tune_runtime(), shared_supervisor(), explain_disk_errors(store.folder), hold_build_lock(store, report):
        store.remove_unused()
        restore_warning = _restore_artifacts(store, options)
        with BuildInputs.from_store(store, options) as inputs:
            result = _build_generation(root, store, options, report, inputs)
        store.remove_unused()
        shutil.rmtree(store.folder / PARSED_FOLDER, ignore_errors=True)  # the generation has it now
    if options.artifacts:
        result.restored_artifacts = not restore_warning
        result.warnings += [restore_warning] if restore_warning else []
    result.seconds = round(time.monotonic() - started, 3)
    return result


@contextmanager
def _tune_runtime() -> Iterator[None]:
    """Turn off library features that only pay in long-lived processes: a tenth of a small build."""
    # Numpy would start a thread for each core to multiply matrices, and a build has none.
    os.putenv("OPENBLAS_NUM_THREADS", "1")
    thresholds = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _restore_artifacts(store: GenerationStore, options: BuildOptions) -> str:
    """Import an index that was built elsewhere; return the reason if it cannot be used."""
    if not options.artifacts:
        return ""
    from cleats.toolsets.code.index.portable import import_generation  # noqa: PLC0415 - hardly ever

    return import_generation(store, Path(options.artifacts))


@contextmanager
def hold_build_lock(store: GenerationStore, report: ProgressCallback) -> Iterator[None]:
    """Be the only builder of an index; wait for other builders."""
    while (lock := store.try_build_lock()) is None:
        report(BuildProgress("wait", "another build of this repository is running"))
        time.sleep(LOCK_RETRY_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _build_generation(
    root: Path, store: GenerationStore, options: BuildOptions, report: ProgressCallback, inputs: BuildInputs
) -> BuildReport:
    report(BuildProgress("look", "looking for files"))
    survey = FileSurvey.from_folder(root, inputs.known_files, options)
    if inputs.lease is not None and survey.is_unchanged(inputs, options):
        return BuildReport.from_unchanged(inputs.meta, inputs.lease.name)
    # A check that finds nothing to do must not wait for parsers and engines to load.
    from cleats.toolsets.code.index.writer import GenerationWriter  # noqa: PLC0415

    with store.create_draft() as draft:
        writer = GenerationWriter(root, options, report, inputs, survey, draft)
        meta, files = writer.run()
        report(BuildProgress("publish", "writing to the disk"))
        generation = store.publish(draft)
    return BuildReport.from_meta(meta, generation=generation, published=True, files=files, warnings=writer.warnings)
