"""The current catalogue of skills and its refresh.

`refresh` may take long, in a separate thread: it builds the next catalogue next to the current one,
and one assignment replaces it. A catalogue in use never changes.
"""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from cleats.settings import Settings
from cleats.toolsets.skills.catalogue import SkillCatalogue, assemble_catalogue
from cleats.toolsets.skills.descriptions import describe_catalogue
from cleats.toolsets.skills.scan import SkillTree
from cleats.toolsets.skills.selection import SkillFilter, read_switches, switch_file
from cleats.toolsets.skills.skill import Skill, SkillProblem, SkillSource
from cleats.toolsets.skills.sources import PluginSources, find_plugins, list_sources

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CatalogueEdition:
    """A catalogue and its description; a request uses one from start to end."""

    catalogue: SkillCatalogue
    description: str
    number: int = 0


class SkillLibrary:
    """The skills of this machine, for one set of settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._filter = SkillFilter(settings.skills.include, settings.skills.exclude)
        self._trees: dict[SkillSource, SkillTree] = {}
        self._inputs: tuple[PluginSources, list[str], list[SkillProblem]] | None = None
        self._edition = CatalogueEdition(SkillCatalogue(), "")
        self._lock = threading.Lock()
        self.refresh_seconds = 0.0
        """The duration of the last refresh."""

    @property
    def edition(self) -> CatalogueEdition:
        """The current edition. The first access reads it; afterwards only `refresh` changes it."""
        if not self._edition.number:
            self.refresh()
        return self._edition

    @property
    def catalogue(self) -> SkillCatalogue:
        return self.edition.catalogue

    def refresh(self) -> CatalogueEdition:
        """Scan the disk again; return the same edition if nothing changed."""
        with self._lock:
            started_at = time.perf_counter()
            self._rebuild()
            self.refresh_seconds = time.perf_counter() - started_at
            return self._edition

    def list_folders(self) -> list[str]:
        """Return the existing source folders, for watching them."""
        return [tree.source.path for tree in self._trees.values() if tree.exists]

    def _rebuild(self) -> None:
        installed_plugins = find_plugins(self._settings)
        order: Sequence[SkillSource] = [*list_sources(self._settings), *installed_plugins.sources]
        inputs = (installed_plugins, *self._load_switches())
        changed = inputs != self._inputs or list(self._trees) != order
        self._inputs = inputs
        self._trees = {source: self._trees.get(source) or SkillTree(source) for source in order}
        for tree in self._trees.values():
            changed |= tree.scan()
        if not changed and self._edition.number:
            return
        trees = [tree for tree in self._trees.values() if tree.exists]
        problems = [*installed_plugins.problems, *inputs[2]]
        problems += chain.from_iterable(tree.problems for tree in self._trees.values())
        results = [list(tree.iter_results()) for tree in trees]
        broken = [result.problem for result in chain.from_iterable(results) if not isinstance(result, Skill)]
        catalogue = assemble_catalogue(
            ([result for result in tree_results if isinstance(result, Skill)] for tree_results in results),
            skill_filter=self._filter,
            disabled=inputs[1],
            problems=[*problems, *dict.fromkeys(broken)],
            sources=[tree.source for tree in trees],
        )
        has_search = self._settings.skills.tools == "all"
        description = describe_catalogue(catalogue, self._settings.skills.budget, has_search=has_search)
        self._edition = CatalogueEdition(catalogue, description, self._edition.number + 1)

    def _load_switches(self) -> tuple[list[str], list[SkillProblem]]:
        try:
            return read_switches(self._settings), []
        except (OSError, ValueError) as error:
            path = str(switch_file(self._settings))
            fix = "Repair or delete the file."
            return [], [SkillProblem("warning", "switches", f"it cannot be used: {error}", fix, path)]
