"""Tests of the text that proves the claims."""

from pathlib import Path

from cleats.toolsets.launch.runs.artifacts import encode_canonical_json
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.excerpts import MAX_EXCERPT_LINES, MAX_LINE_CHARS, collect_excerpts


def test_every_cited_place_has_its_text_once_and_long_ones_are_cut(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("\n".join(f"line {number}" for number in range(1, 40)))
    (tmp_path / "b.min.js").write_text("x" * 1000)
    citations = [
        {"path": "a.py", "start_line": 2, "end_line": 3},
        {"path": "a.py", "start_line": 2, "end_line": 3},
        {"path": "a.py", "start_line": 5, "end_line": 39},
        {"path": "b.min.js", "start_line": 1},
        {"path": "gone.py", "start_line": 1, "end_line": 1},
    ]

    document = collect_excerpts(CheckoutTree(tmp_path), {"repo_sha": "a" * 40, "claims": [{"citations": citations}]})

    short, cut, wide = document["excerpts"]
    assert short == {"path": "a.py", "start_line": 2, "end_line": 3, "lines": ["line 2", "line 3"]}
    assert (cut["end_line"], len(cut["lines"]), cut["lines"][-1]) == (39, MAX_EXCERPT_LINES, "line 16")
    assert wide["lines"] == ["x" * MAX_LINE_CHARS]
    assert encode_canonical_json(document)
