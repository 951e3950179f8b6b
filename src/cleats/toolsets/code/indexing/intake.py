"""Files on their way into the catalogue: read by workers, written here."""

import os
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from cleats.runtime.pool import Lost, Pool
from cleats.toolsets.code.indexing.progress import Counter
from cleats.toolsets.code.indexing.reading import Outcome, Reader, Task, unreadable
from cleats.toolsets.code.store.catalogue import Catalogue, Known

FEW = 32
"""Files that one worker reads sooner than a second one starts."""

FAILED = "its parser crashed or took too long"

_outcome = msgspec.msgpack.Decoder(Outcome).decode


class Intake(Struct):
    """What came of the files that were read."""

    indexed: list[str] = []
    skipped: list[str] = []
    gone: list[str] = []

    @property
    def paths(self) -> list[str]:
        """All that were looked at."""
        return [*self.indexed, *self.skipped, *self.gone]


def take_in(
    catalogue: Catalogue, tasks: Sequence[Task], reader: Reader, workers: int, counter: Counter
) -> Intake:
    """Read files and write what they say, in the order given."""
    intake = Intake()
    for done, (task, outcome) in enumerate(_outcomes(tasks, reader, workers), 1):
        _write(catalogue, task, outcome, intake)
        counter.at(done)
    return intake


def _outcomes(
    tasks: Sequence[Task], reader: Reader, workers: int
) -> Iterator[tuple[Task, Outcome]]:
    if not tasks:
        return
    reader.warm()
    count = workers or os.cpu_count() or 1
    pool = Pool(reader, 1 if len(tasks) < FEW else count)
    for task, result in pool.map(tasks, _weight):
        yield task, _again(task, reader) if isinstance(result, Lost) else _outcome(result)


def _again(task: Task, reader: Reader) -> Outcome:
    """Read a file whose parser failed, by lines."""
    plain = msgspec.structs.replace(task, plain=FAILED)
    for _, result in Pool(reader, 1).map([plain], _weight):
        if not isinstance(result, Lost):
            return _outcome(result)
    return unreadable(task, FAILED)


def _weight(task: Task) -> int:
    return task.size + 256


def _write(catalogue: Catalogue, task: Task, outcome: Outcome, intake: Intake) -> None:
    if outcome.row is not None:
        catalogue.put(outcome.row)
        intake.indexed.append(task.path)
    elif outcome.status == "skipped":
        known = Known(outcome.size, outcome.mtime_ns, outcome.hash)
        catalogue.skip(task.path, known, outcome.reason, outcome.detail)
        intake.skipped.append(task.path)
    else:
        intake.gone.append(task.path)
