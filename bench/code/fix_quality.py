"""How well fixes are located: by Cleats, by BM25 over files, by both, by ripgrep, semble and zoekt."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import fix_commits
from bench.code import ours, rivals
from bench.code.answers import MAX_RESULTS
from bench.code.file_baselines import FileWords, ZoektIndex, find_zoekt, fuse_ranks, rank_by_grep
from bench.code.fixes import FixCase, FixSet, load_fix_sets
from bench.code.heldout import MAX_PASSAGE_LINES

FETCHED_HITS = 60
"""Hits that are asked for, so that ten files are left when tests have been taken out."""

BODY_KINDS = ("function", "method", "constructor")
"""Kinds whose hits count however long they are; others must be short."""


@dataclass(frozen=True, slots=True)
class FixOutcome:
    """The scores of every system for the fixes of one repository."""

    repository: str
    is_reported: bool
    case_count: int
    file_scores: Mapping[str, float]
    """The mean reciprocal rank of the first right file among ten, by system."""
    declaration_share: float
    """The share of fixes with known lines that have one of them in the first ten hits of Cleats."""


def measure_fix_sets(clones: Path, cache: Path) -> list[FixOutcome]:
    """Measure every repository."""
    return [measure_fix_set(fix_set, fix_set.prepare(clones), cache) for fix_set in load_fix_sets()]


def measure_fix_set(fix_set: FixSet, folder: Path, cache: Path) -> FixOutcome:
    """Measure one repository with every system."""
    ours.build_index(folder, cache)
    questions = [case.question for case in fix_set.cases]
    with ours.open_engine(folder, cache) as engine:
        hits = [keep_source_hits(ours.search_code(engine, text, top=FETCHED_HITS)) for text in questions]
    cleats = [list(dict.fromkeys(hit["file"] for hit in found)) for found in hits]
    words = FileWords(folder)
    bm25 = [words.rank(text) for text in questions]
    ripgrep = rivals.find_ripgrep()
    lists: dict[str, Sequence[Sequence[str]]] = {
        "cleats": cleats,
        "BM25 over files": bm25,
        "both fused": list(map(fuse_ranks, cleats, bm25)),
        "ripgrep": [rank_by_grep(ripgrep, folder, text) for text in questions],
        "semble": rank_by_semble(folder, questions, cache),
    }
    if zoekt := find_zoekt():
        zoekt_index = ZoektIndex(zoekt, folder, cache / "zoekt" / folder.name)
        lists["zoekt"] = list(map(zoekt_index.rank, questions))
    return FixOutcome(
        fix_set.repository,
        fix_set.is_reported,
        len(fix_set.cases),
        {name: compute_mean_rank(fix_set.cases, ranked) for name, ranked in lists.items()},
        compute_declaration_share(fix_set.cases, hits),
    )


def rank_by_semble(folder: Path, questions: Sequence[str], cache: Path) -> list[list[str]]:
    """Return the source files that semble finds for each question."""
    _, answer = rivals.run_semble(folder, questions, cache, FETCHED_HITS)
    return [
        list(dict.fromkeys(path for path, *_ in results if fix_commits.is_source_path(path)))
        for results in answer["answers"]
    ]


def render_fixes(outcomes: Sequence[FixOutcome]) -> str:
    """Return a table of the outcomes, the reported repositories last."""
    systems = list(outcomes[0].file_scores)
    rows = [
        f"| repository | half | fixes | {' | '.join(systems)} | declaration in ten |",
        "|---" * (len(systems) + 4) + "|",
    ]
    for item in outcomes:
        scores = " | ".join(f"{item.file_scores[name]:.3f}" for name in systems)
        half = "reported" if item.is_reported else "choosing"
        rows.append(f"| {item.repository} | {half} | {item.case_count} | {scores} | {item.declaration_share:.2f} |")
    return "\n".join(rows)


def keep_source_hits(hits: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the hits in source files that are not tests."""
    return [hit for hit in hits if fix_commits.is_source_path(hit["file"])]


def compute_mean_rank(cases: Sequence[FixCase], lists: Sequence[Sequence[str]]) -> float:
    """Return the mean reciprocal rank of the first right file among ten."""
    pairs = zip(cases, lists, strict=True)
    first_ranks = [_find_first(paths[:MAX_RESULTS], case.lines.__contains__) for case, paths in pairs]
    return sum(1 / rank for rank in first_ranks if rank) / max(1, len(first_ranks))


def compute_declaration_share(cases: Sequence[FixCase], hits: Sequence[Sequence[Mapping[str, Any]]]) -> float:
    """Return the share of the fixes with known lines that are found among the first ten hits."""
    known = [(case, found) for case, found in zip(cases, hits, strict=True) if any(case.lines.values())]
    right = [any(_is_changed(case, hit) for hit in found[:MAX_RESULTS]) for case, found in known]
    return sum(right) / max(1, len(right))


def _is_changed(case: FixCase, hit: Mapping[str, Any]) -> bool:
    first, last = hit["startLine"], hit["endLine"]
    is_narrow = hit["kind"] in BODY_KINDS or last - first < MAX_PASSAGE_LINES
    return is_narrow and any(first <= line <= last for line in case.lines.get(hit["file"], ()))


def _find_first(items: Sequence[Any], is_right: Callable[[Any], bool]) -> int:
    """Return the rank of the first right item, from 1; 0 if there is none."""
    return next((rank for rank, item in enumerate(items, 1) if is_right(item)), 0)
