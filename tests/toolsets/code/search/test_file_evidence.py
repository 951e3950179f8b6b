"""Evidence beside a chunk's own words: its file, messages, its standing, and what filters ask about."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleats.toolsets.code.analysis.risk.summary import Risk
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from tests.support.search import ShopFile, build_generation


def make_file(path: str, *texts: str, **facts: Any) -> ShopFile:
    file = ShopFile(path, "\n".join(texts))
    for number, text in enumerate(texts):
        file.add_chunk("function", f"f{number}", text, **facts)
    return file


def find_hits(tmp_path: Path, query: str, *files: ShopFile, **arguments: Any) -> list[dict[str, Any]]:
    engine = SearchEngine.open(build_generation(tmp_path / "made", list(files)))
    request = parse_request({"query": query, "mode": "code", "explain": True, "ann": False, **arguments})
    hits: list[dict[str, Any]] = render_answer(engine, search_generation(engine, request))["code"]
    return hits


def list_files(hits: list[dict[str, Any]]) -> list[str]:
    return [hit["file"] for hit in hits]


def map_points(hit: dict[str, Any]) -> dict[str, float]:
    return {part["name"]: part["points"] for part in hit["scoreBreakdown"]["parts"]}


def test_of_two_equal_functions_the_one_whose_file_has_the_other_words_comes_first(tmp_path: Path) -> None:
    hits = find_hits(
        tmp_path,
        "session cookies are not renewed when the token expires",
        make_file("a.py", "def f0(): renew token", "def f1(): paint walls"),
        make_file("b.py", "def f0(): renew token", "def f1(): session cookies expires"),
    )

    renewals = [hit for hit in hits if hit["name"] == "f0"]
    assert list_files(renewals) == ["b.py", "a.py"]
    assert map_points(renewals[0])["file"] > map_points(renewals[1])["file"]


def test_a_word_of_the_path_counts_for_every_chunk_of_the_file(tmp_path: Path) -> None:
    hits = find_hits(
        tmp_path,
        "text area loses its cursor after undo",
        make_file("a/button.py", "def f0(): undo cursor"),
        make_file("z/text_area.py", "def f0(): undo cursor"),
    )

    assert list_files(hits) == ["z/text_area.py", "a/button.py"]


def test_a_message_without_quotes_brings_the_place_that_has_it(tmp_path: Path) -> None:
    hits = find_hits(
        tmp_path,
        "why do I get cannot open the lock file for writing here",
        make_file("a.py", "def f0(): lock open file writing open lock writing get"),
        make_file("b.py", "def f0(): raise Error('cannot open the lock file for writing')"),
    )

    assert list_files(hits)[0] == "b.py"


@pytest.mark.parametrize(("path", "facts"), [("a.py", {"decorators": ["Deprecated"]}), ("a_pb2.py", {})])
def test_deprecated_and_generated_code_comes_after_the_rest_and_says_why(
    tmp_path: Path, path: str, facts: dict[str, Any]
) -> None:
    text = "def f0(): compute the total price of all orders"
    hits = find_hits(tmp_path, "total price of all orders", make_file(path, text, **facts), make_file("b.py", text))

    assert list_files(hits) == ["b.py", path]
    assert map_points(hits[1])["standing"] < 0
    assert "standing" not in map_points(hits[0])


def test_everything_of_an_author_is_listed_by_the_last_change(tmp_path: Path) -> None:
    files = [make_file(f"{name}.py", "def f0(): pass") for name in "abc"]
    for file, modified in zip(files, (100, 300, 200), strict=True):
        file.author, file.modified = "Ada", modified

    assert list_files(find_hits(tmp_path, "*", *files, author="Ada")) == ["b.py", "c.py", "a.py"]


def test_everything_with_a_risk_is_listed_by_severity(tmp_path: Path) -> None:
    files = [make_file(f"{name}.py", "def f0(): pass") for name in "abc"]
    for file, severity in zip(files, ("low", "critical", "medium"), strict=True):
        file.add_late_facts("f0", risk=Risk(tags=["shell"], severity=severity))

    assert list_files(find_hits(tmp_path, "*", *files, risk="shell")) == ["b.py", "c.py", "a.py"]


def test_a_question_about_a_defect_brings_the_long_function_and_another_question_the_short_one(tmp_path: Path) -> None:
    short = "def f0(): total price of orders"
    long = "def f0(): price of orders\n" + "\n".join(f"    step{number} = total{number}" for number in range(60))
    files = make_file("a.py", short), make_file("b.py", long)

    finding = find_hits(tmp_path / "finding", "how the total price of orders is computed", *files)
    defect = find_hits(tmp_path / "defect", "fix the wrong total price of orders", *files)

    assert (list_files(finding)[0], list_files(defect)[0]) == ("a.py", "b.py")


def test_the_best_file_for_a_question_comes_first_and_knows_its_chunks(tmp_path: Path) -> None:
    files = make_file("a.py", "def f0(): renew", "def f1(): paint"), make_file("b.py", "def f0(): renew session cookie")
    evidence = SearchEngine.open(build_generation(tmp_path / "made", list(files))).file_evidence

    ranked = evidence.rank_files(["renew", "session", "cooki"], demote_tests=True)
    points = ranked.compute_points(rank_weight=1.0, score_weight=1.0)

    assert [evidence.list_chunks([file]).tolist() for file in ranked.opened_numbers] == [[2], [0, 1]]
    assert evidence.find_files(np.arange(3)).tolist() == [0, 0, 1]
    assert points[1] == pytest.approx(1 / 6 + 1)
    assert points[0] < points[1]


def test_everything_without_such_a_filter_is_listed_by_path(tmp_path: Path) -> None:
    files = [make_file(f"{name}.py", "def f0(): pass") for name in "cab"]

    assert list_files(find_hits(tmp_path, "*", *files)) == ["a.py", "b.py", "c.py"]
