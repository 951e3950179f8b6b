"""The catalogue as it is now, and how it becomes current.

`refresh` may take its time, in a thread of its own: it builds the next catalogue beside the one in
use, and one assignment puts it in its place. Whoever holds a catalogue keeps it whole.
"""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from cleats.settings import Settings
from cleats.toolsets.skills.catalogue import Catalogue, assemble
from cleats.toolsets.skills.describe import describe
from cleats.toolsets.skills.filters import Filter
from cleats.toolsets.skills.plugins import Plugins, plugins
from cleats.toolsets.skills.roots import sources
from cleats.toolsets.skills.scan import Tree
from cleats.toolsets.skills.skill import Problem, Skill, Source
from cleats.toolsets.skills.switches import read_switches, switch_file

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Edition:
    """A catalogue and the text that goes with it; a request uses one from start to end."""

    catalogue: Catalogue
    description: str
    number: int = 0


class Library:
    """The skills of this machine, for one set of settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._wanted = Filter(settings.skill_include, settings.skill_exclude)
        self._trees: dict[Source, Tree] = {}
        self._context: tuple[Plugins, list[str], list[Problem]] | None = None
        self._edition = Edition(Catalogue(), "")
        self._busy = threading.Lock()
        self.took = 0.0
        """Seconds of the last refresh."""

    @property
    def edition(self) -> Edition:
        """What there is. Read first by whoever comes first; then only `refresh` changes it."""
        if not self._edition.number:
            self.refresh()
        return self._edition

    @property
    def catalogue(self) -> Catalogue:
        return self.edition.catalogue

    def refresh(self, *, thorough: bool = False) -> Edition:
        """Look at the disk again; the same edition when nothing is different."""
        with self._busy:
            begun = time.perf_counter()
            self._refresh(thorough=thorough)
            self.took = time.perf_counter() - begun
            return self._edition

    def folders(self) -> list[str]:
        """The folders that are there, for whoever can watch them."""
        return [tree.source.path for tree in self._trees.values() if tree.there]

    def _refresh(self, *, thorough: bool) -> None:
        found = plugins(self._settings)
        order: Sequence[Source] = [*sources(self._settings), *found.sources]
        context = (found, *self._switches())
        changed = context != self._context or list(self._trees) != order
        self._context = context
        self._trees = {source: self._trees.get(source) or Tree(source) for source in order}
        for tree in self._trees.values():
            changed |= tree.look(thorough=thorough)
        if not changed and self._edition.number:
            return
        trees = [tree for tree in self._trees.values() if tree.there]
        problems = [*found.problems, *context[2]]
        problems += chain.from_iterable(tree.problems for tree in self._trees.values())
        catalogue = assemble(
            ([s for s in tree.found() if isinstance(s, Skill)] for tree in trees),
            wanted=self._wanted,
            disabled=context[1],
            problems=[*problems, *_broken(trees)],
            sources=[tree.source for tree in trees],
        )
        description = describe(catalogue, self._settings.skill_budget)
        self._edition = Edition(catalogue, description, self._edition.number + 1)

    def _switches(self) -> tuple[list[str], list[Problem]]:
        try:
            return read_switches(self._settings), []
        except (OSError, ValueError) as error:
            path = str(switch_file(self._settings))
            fix = "Repair or delete the file."
            return [], [Problem("warning", "switches", f"it cannot be used: {error}", fix, path)]


def _broken(trees: Sequence[Tree]) -> list[Problem]:
    """A word about everything that is no skill; once, however many ways lead to it."""
    problems = {
        found.problem: None
        for tree in trees
        for found in tree.found()
        if not isinstance(found, Skill)
    }
    return list(problems)
