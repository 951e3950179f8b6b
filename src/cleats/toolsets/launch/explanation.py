"""The explanation of a line of a page: the claims it states, and the lines of the source that prove them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import front_matter
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.site import pages
from cleats.toolsets.launch.site.claim_markers import list_claim_markers
from cleats.toolsets.launch.source.text.code_blocks import normalize_code

MAX_QUOTED_LINES = 8
"""Maximum number of lines that are quoted of one citation."""

DocumentReader = Callable[[str], Any]
"""Returns a JSON artifact of the run by name."""


@dataclass(frozen=True, slots=True)
class LineExplainer:
    """Explains the lines of the pages of one run."""

    folder: RunFolder
    read_document: DocumentReader

    def explain_line(self, page: str, number: int) -> dict[str, Any]:
        """Explain a line of a page; `page` is its path or the end of it.

        Raises:
            ToolError: INVALID_INPUT, no page or several pages have this name, or the page has no such line.
        """
        path, file = self._find_page(page)
        text = file.read_text(encoding="utf-8", errors="replace")
        lines = text.split("\n")
        if not 1 <= number <= text.count("\n") + (not text.endswith("\n")):
            raise _make_input_error(f"{path} has {text.count(chr(10))} lines; line {number} does not exist.")
        parsed = front_matter.parse_page(text)
        explanation: dict[str, Any] = {"page": path, "line": number, "text": lines[number - 1]}
        block = next(
            (
                block
                for block in pages.list_code_blocks(parsed.body, parsed.body_line)
                if block.line <= number <= block.line + block.code.count("\n") + 1
            ),
            None,
        )
        if block is not None:
            return {**explanation, "kind": "code", "sources": self._explain_code(block.code)}
        claim_ids = [
            marker.claim_id for marker in list_claim_markers(parsed.body, parsed.body_line) if marker.line == number
        ]
        kind = "claim" if claim_ids else "front matter" if number < parsed.body_line else "text"
        return {**explanation, "kind": kind, "claims": [self._explain_claim(claim_id) for claim_id in claim_ids]}

    def _find_page(self, page: str) -> tuple[str, Path]:
        paths = [str(entry["output_path"]) for entry in self.read_document("page_plan.json")["pages"]]
        matches = [path for path in paths if path == page or path.endswith(f"/{page}")]
        if len(matches) != 1:
            reason = (
                f"{len(matches)} pages are named {page!r}." if matches else f"No page of the run is named {page!r}."
            )
            raise _make_input_error(reason, known=matches or paths)
        file = self.folder.site / matches[0]
        if not file.is_file():
            raise _make_input_error(f"{matches[0]} is not in the worktree of the run.")
        return matches[0], file

    def _explain_claim(self, claim_id: str) -> dict[str, Any]:
        claims = {claim["claim_id"]: claim for claim in self.read_document("evidence_map.json")["claims"]}
        claim = claims.get(claim_id)
        if claim is None:
            return {"claim_id": claim_id, "statement": "", "sources": []}
        return {
            "claim_id": claim_id,
            "statement": claim["claim_text"],
            "status": claim["truth_status"],
            "sources": [self._quote_lines(citation) for citation in claim["citations"]],
        }

    def _explain_code(self, code: str) -> list[dict[str, Any]]:
        return [
            {**self._quote_lines(snippet["source"]), **({"run": snippet["run"]} if "run" in snippet else {})}
            for snippet in self.read_document("snippet_catalog.json")["snippets"]
            if normalize_code(snippet["code"]) == normalize_code(code) and snippet.get("source", {}).get("path")
        ]

    def _quote_lines(self, citation: Mapping[str, Any]) -> dict[str, Any]:
        start, end = int(citation.get("start_line") or 1), int(citation.get("end_line") or 1)
        file = (self.folder.repo / str(citation["path"])).resolve()
        quoted: list[str] = []
        if file.is_relative_to(self.folder.repo.resolve()) and file.is_file():
            quoted = file.read_text(encoding="utf-8", errors="replace").split("\n")[start - 1 : end][:MAX_QUOTED_LINES]
        commit = str(self.read_document("resolved_refs.json")["repo"]["resolved_sha"])
        return {"path": citation["path"], "start_line": start, "end_line": end, "commit": commit, "text": quoted}


def _make_input_error(message: str, **details: Any) -> ToolError:
    return ToolError(ErrorCode.INVALID_INPUT, message, details=details or None)
