"""The text of the lines that prove the claims, so that a reviewer reads the evidence beside the claim."""

from collections.abc import Mapping
from typing import Any, Final

from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

MAX_EXCERPT_LINES: Final = 12
"""Lines of one excerpt; the place says where the rest is."""

MAX_LINE_CHARS: Final = 240
"""Characters of one line; longer ones are generated or data."""


def collect_excerpts(tree: CheckoutTree, evidence_map: Mapping[str, Any]) -> dict[str, Any]:
    """Return the text of every place that the evidence map cites, in the order of the places."""
    places = {
        (citation["path"], citation["start_line"], citation.get("end_line") or citation["start_line"])
        for claim in evidence_map["claims"]
        for citation in claim["citations"]
        if citation.get("start_line")
    }
    return {
        "schema_version": "1.0",
        "repo_sha": evidence_map["repo_sha"],
        "excerpts": [
            {"path": path, "start_line": start, "end_line": end, "lines": lines}
            for path, start, end in sorted(places)
            if (lines := _read_lines(tree, path, start, end))
        ],
    }


def _read_lines(tree: CheckoutTree, path: str, start: int, end: int) -> list[str]:
    text_lines = (tree.read_text(path) or "").splitlines()
    return [line[:MAX_LINE_CHARS] for line in text_lines[start - 1 : min(end, start + MAX_EXCERPT_LINES - 1)]]
