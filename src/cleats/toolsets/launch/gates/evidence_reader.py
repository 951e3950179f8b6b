"""The claims of a run, with the lines of the repository that they cite."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from cleats.toolsets.launch.gates import page_text
from cleats.toolsets.launch.gates.site import LaunchSite


class EvidenceReader:
    """Access to the claims of the run and to the lines that they cite."""

    def __init__(self, site: LaunchSite) -> None:
        self._site = site
        self.claims = site.evidence
        self._lines_by_path: dict[str, list[str] | None] = {}

    @cached_property
    def weigh_word(self) -> Callable[[str], float]:
        return page_text.weigh_words(claim["claim_text"] for claim in self.claims.values())

    @cached_property
    def formats(self) -> frozenset[str]:
        """The formats that the product is known to support, in capitals."""
        entries = self._site.facts.get("supported_formats", ())
        names = (str(entry["format"]) for entry in entries if entry.get("status") == "implemented")
        claimed = (page_text.find_formats(claim["claim_text"]) for claim in self.claims.values())
        return frozenset({name.upper().lstrip(".") for name in names}.union(*claimed))

    def read_citation(self, citation: Mapping[str, Any]) -> str | None:
        """Return the text of the lines that a citation names, or None when they do not exist."""
        path = str(citation["path"])
        if path not in self._lines_by_path:
            self._lines_by_path[path] = self._read_lines(path)
        lines = self._lines_by_path[path]
        start, end = int(citation["start_line"]), int(citation["end_line"])
        if lines is None or not 1 <= start <= end <= len(lines):
            return None
        return "\n".join(lines[start - 1 : end])

    def _read_lines(self, path: str) -> list[str] | None:
        root = self._site.job.repo.resolve()
        file = (root / path).resolve()
        if not file.is_relative_to(root) or Path(path).is_absolute() or not file.is_file():
            return None
        # Citations count only line ends: a form feed or U+2028 does not end a line.
        text = file.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        return text.replace("\r", "\n").removesuffix("\n").split("\n")

    def read_sources(self, claim: Mapping[str, Any]) -> str:
        """Return everything that a claim rests on: the cited lines and the names of their files."""
        excerpts = ((citation["path"], self.read_citation(citation)) for citation in claim["citations"])
        return "\n".join(f"{path}\n{excerpt}" for path, excerpt in excerpts if excerpt is not None)
