"""Tests that names and docstrings stay in plain words; `CONTRIBUTING.md` has the rules."""

import re
from pathlib import Path

import pytest

from tests.support.name_metrics import NameMetrics, is_participle, measure_names
from tests.support.paths import REPOSITORY_ROOT

TREES = {
    "src": ("src",),
    "tests": ("tests",),
    "tools": ("bench", "book", "conformance"),
}
METRICS_BY_TREE: dict[str, NameMetrics] = {}


def read_metrics(tree: str) -> NameMetrics:
    if tree not in METRICS_BY_TREE:
        METRICS_BY_TREE[tree] = measure_names(*(REPOSITORY_ROOT / folder for folder in TREES[tree]))
    return METRICS_BY_TREE[tree]


@pytest.mark.parametrize("tree", TREES)
def test_functions_are_named_by_a_verb_and_an_object(tree: str) -> None:
    metrics = read_metrics(tree)

    assert metrics.participle_share < 0.01, metrics.participles
    assert metrics.multiword_function_share > 0.45


@pytest.mark.parametrize("tree", TREES)
def test_constants_say_what_they_measure(tree: str) -> None:
    assert read_metrics(tree).oneword_constant_share < 0.20


@pytest.mark.parametrize("tree", TREES)
def test_docstrings_do_not_open_with_a_question_word(tree: str) -> None:
    assert read_metrics(tree).question_docstring_share < 0.02


@pytest.mark.parametrize("tree", TREES)
def test_a_class_name_occurs_in_two_modules_at_most(tree: str) -> None:
    assert read_metrics(tree).repeated_classes == {}


def test_the_guard_tells_participles_from_verbs() -> None:
    assert [name for name in ("told", "settled", "feed", "embed", "parse", "sort_keyed") if is_participle(name)] == [
        "told",
        "settled",
    ]


def test_the_guard_measures_a_file_as_its_rules_say(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(
        'MOST = 3\nMAX_FILE_BYTES = 4\n\ndef told() -> None:\n    """What is left."""\n\n'
        'def parse_query() -> None:\n    """Parse a query."""\n\nclass Reader: ...\n'
    )

    metrics = measure_names(tmp_path)

    assert (metrics.participles, metrics.multiword_function_share) == (["told"], 0.5)
    assert (metrics.oneword_constant_share, metrics.question_docstring_share) == (0.5, 0.5)
    assert metrics.modules_by_class.keys() == {"Reader"}


def test_every_glossary_term_has_one_line_and_is_in_order() -> None:
    page = (REPOSITORY_ROOT / "docs" / "glossary.md").read_text()
    terms = re.findall(r"^- \*\*([^*]+)\*\*: .+\.$", page, re.MULTILINE)

    assert len(terms) >= 55
    assert terms == sorted(terms, key=str.lower)
    assert len(terms) == len(set(terms)) == sum(line.startswith("- ") for line in page.splitlines())
