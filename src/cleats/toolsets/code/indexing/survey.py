"""How a folder compares with its index: the look that every build and every refresh begins with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleats.toolsets.code.discovery.files import Discovery, discover
from cleats.toolsets.code.indexing.basis import Basis
from cleats.toolsets.code.indexing.heads import Stand, stand
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.indexing.plan import Checked, Plan, check, compare
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.catalogue import Known
from cleats.toolsets.code.triage.archive import Archive

WORTH_NOTING: Final = 8 << 20
"""Bytes of unchanged files that are hashed at every look before their times are noted anew: a
generation that only says so costs more than to hash less."""


class Survey(Struct, frozen=True):
    """What was found, before anything is read for the index."""

    found: Discovery
    plan: Plan
    checked: Checked
    head: Stand | None
    watched: tuple[str, ...] = ()
    """Folders outside of the root that count too."""

    @classmethod
    def of(cls, root: Path, known: Mapping[str, Known], options: Options) -> "Survey":
        """Look at a folder. Blocks while git lists the files."""
        head = stand(root) if options.git else None  # first: what moves later is seen next time
        found = discover(root, options.limits)
        watched: tuple[str, ...] = ()
        if options.records:
            archive = Archive.of(Path(options.records), Repository(root))
            watched = archive.watched
            found = _with_records(found, archive)
        plan = compare(found.files, known)
        return cls(found, plan, check(plan.suspects, known), head, watched)

    @property
    def changed(self) -> list[str]:
        return [each.path for each in self.checked.changed]

    def settled(self, basis: Basis, options: Options) -> bool:
        """Whether the index says all that there is to say."""
        wanted = made_of(basis, options, self.head)
        return (
            not (self.plan.added or self.plan.removed or self.changed)
            and self.checked.bytes < WORTH_NOTING
            and all(basis.meta.get(key) == value for key, value in wanted.items())
        )


def _with_records(found: Discovery, archive: Archive) -> Discovery:
    """The records of a repository beside its files; a file with the path of one is not read."""
    records = archive.found()
    if not records:
        return found
    files = {each.path: each for each in (*found.files, *records)}
    return replace(found, files=[files[path] for path in sorted(files)])


def made_of(basis: Basis, options: Options, head: Stand | None) -> dict[str, Any]:
    """What a generation is made of besides its files."""
    return {
        "modes": list(basis.form.modes),
        "vectors": basis.form.vectors,
        "fingerprint": basis.form.fingerprint,
        "sqlite": basis.sqlite,
        "lint": lint_of(options),
        "git": options.git,
        "head": head,
    }


def lint_of(options: Options) -> list[bool]:
    """Which linters count."""
    return [options.lint, options.repository_code]
