"""What the bytes of one file cannot say: git, lint, and risk that crosses files."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cleats.toolsets.code.history.state import GitState
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.indexing.progress import Report
from cleats.toolsets.code.store.catalogue import Catalogue


@dataclass(slots=True)
class Enrichment:
    """Adds to the rows of a catalogue what the rest of the repository says about them."""

    root: Path
    options: Options
    git: GitState | None
    report: Report
    draft: Path
    previous: Path | None

    def add(self, catalogue: Catalogue, changed: Iterable[str] | None) -> list[str]:
        """Fill in what is missing for the files named, or for all; return warnings."""
        return []
