"""Tests of patterns: automata decide, and agree with a regular expression engine."""

import jsonschema_rs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cleats.contract.compat import BumpLevel
from cleats.contract.compat.findings import ContractSide
from cleats.contract.compat.patterns import UnsupportedPatternError, find_unmatched_text
from cleats.contract.compat.schema_diff import compare_schemas
from tests.contract.compat.test_compat import SEARCH_SETTINGS


def matches(pattern: str, text: str) -> bool:
    return jsonschema_rs.is_valid({"pattern": pattern}, text)


@pytest.mark.parametrize(
    ("pattern", "other"),
    [
        (r"^\d+$", r"^[0-9]+$"),
        (r"^x-", r"^x"),
        (r"^[a-f]$", r"^[a-z]$"),
        (r"^(?:ab|cd)$", r"^[a-d]{2}$"),
        (r"a", r""),
        (r"^\w+$", r"^[A-Za-z0-9_]*$"),
        (r"^a$|^b$", r"^[ab]$"),
        (r"^\u0041$", r"^A$"),
        (r"^(?<year>\d{4})$", r"^\d+$"),
    ],
)
def test_a_pattern_within_another_leaves_no_text(pattern: str, other: str) -> None:
    assert find_unmatched_text(pattern, other) is None


@pytest.mark.parametrize(
    ("pattern", "other"),
    [
        (r"^[0-9]+$", r"^[1-9]+$"),
        (r"^x", r"^x-"),
        (r"^[a-z]{1,64}$", r"^[a-z]{1,63}$"),
        (r"^\s$", r"^[ \t\n]$"),
        (r"^[^x]$", r"^[a-z]$"),
        (r"b$", r"^b"),
    ],
)
def test_a_pattern_beyond_another_leaves_a_text_that_shows_it(pattern: str, other: str) -> None:
    text = find_unmatched_text(pattern, other)

    assert text is not None
    assert matches(pattern, text)
    assert not matches(other, text)


def test_a_dot_matches_no_end_of_a_line() -> None:
    assert find_unmatched_text(r"^[^\n]$", r"^.$") in {"\r", "\u2028", "\u2029"}


@pytest.mark.parametrize("pattern", [r"a(?=b)", r"(a)\1", r"\bx", r"(^a)", r"\p{L}", r"a{1,9999}", r"[]", r"(?!x)"])
def test_a_pattern_without_exact_translation_is_undecided(pattern: str) -> None:
    with pytest.raises(UnsupportedPatternError):
        find_unmatched_text(pattern, "a")


def test_a_wider_pattern_is_safe_and_a_narrower_one_has_a_witness() -> None:
    narrow, wide = ({"properties": {"a": {"type": "string", "pattern": text}}} for text in ("^x-[0-9]+$", r"^x-?\d*$"))

    widened = compare_schemas(narrow, wide, ContractSide.INPUT)
    [narrowed] = compare_schemas(wide, narrow, ContractSide.INPUT)

    assert [finding.rule.id for finding in widened] == ["INPUT_WIDENED"]
    assert narrowed.rule.level is BumpLevel.MAJOR
    assert narrowed.witness is not None
    assert matches(r"^x-?\d*$", narrowed.witness.instance["a"])
    assert not matches("^x-[0-9]+$", narrowed.witness.instance["a"])


PATTERN_PARTS = st.sampled_from(["a", "b", ".", r"\d", "[ab]", "[^a]", "(a|b)", "(?:ab)?", "b*", r"\w+", "c{1,2}"])
PATTERNS = st.builds(
    lambda start, parts, end: start + "".join(parts) + end,
    st.sampled_from(["", "^"]),
    st.lists(PATTERN_PARTS, max_size=4),
    st.sampled_from(["", "$"]),
)


@SEARCH_SETTINGS
@given(PATTERNS, PATTERNS, st.lists(st.text("abc1 \n", max_size=5), min_size=5, max_size=20))
def test_no_text_contradicts_the_automata(pattern: str, other: str, texts: list[str]) -> None:
    found = find_unmatched_text(pattern, other)
    if found is not None:
        assert matches(pattern, found)
        assert not matches(other, found)
        return
    assume(texts)
    assert all(matches(other, text) for text in texts if matches(pattern, text))
