"""Which files have to be read again.

A file whose size and time are those that were noted is the same; anything else is read, and its
hash decides. Times are noted so that a file which may have changed right after it was read has
none that matches (see `rows.UNSURE`).
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from cleats.toolsets.code.discovery.files import Found
from cleats.toolsets.code.indexing.contents import NotAFileError, content, digest_of
from cleats.toolsets.code.store.catalogue import Known


class Plan(Struct, frozen=True):
    """How the files of a folder compare with those of a catalogue."""

    added: Sequence[Found]
    suspects: Sequence[Found]
    """Known, but not seen to be the same."""
    removed: Sequence[str]
    same: int


def compare(found: Sequence[Found], known: Mapping[str, Known]) -> Plan:
    """Tell what is new, what is gone, and what must be looked at."""
    added: list[Found] = []
    suspects: list[Found] = []
    for each in found:
        before = known.get(each.path)
        if before is None:
            added.append(each)
        elif (each.size, each.mtime_ns) != (before.size, before.mtime_ns):
            suspects.append(each)
    present = {each.path for each in found}
    removed = sorted(path for path in known if path not in present)
    return Plan(added, suspects, removed, len(found) - len(added) - len(suspects))


class Checked(Struct, frozen=True):
    """What the hashes of the suspects say."""

    changed: Sequence[Found]
    same: Sequence[tuple[str, int, int]]
    """Path, size and time of those with the content that is known."""
    bytes: int
    """What had to be read for it."""


def check(suspects: Iterable[Found], known: Mapping[str, Known]) -> Checked:
    """Read the suspects and tell which have another content."""
    changed: list[Found] = []
    same: list[tuple[str, int, int]] = []
    read = 0
    for each in suspects:
        try:
            found = content(each.fs_path)
        except (OSError, NotAFileError):
            changed.append(each)  # whoever reads it for the index finds out what it is now
            continue
        read += found.size
        if digest_of(found.data) == known[each.path].hash:
            same.append((each.path, found.size, found.mtime_ns))
        else:
            changed.append(each)
    return Checked(changed, same, read)
