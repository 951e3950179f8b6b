"""Tests of JSON Pointers as defined by RFC 6901."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.pointer import join_pointer, split_pointer


@given(st.lists(st.text()))
def test_splitting_undoes_joining(parts: list[str]) -> None:
    assert split_pointer(join_pointer(parts)) == parts


@given(st.lists(st.text()), st.lists(st.text()))
def test_different_paths_have_different_pointers(one: list[str], other: list[str]) -> None:
    assert (join_pointer(one) == join_pointer(other)) == (one == other)


def test_the_examples_of_the_rfc() -> None:
    assert join_pointer([]) == ""
    assert join_pointer(["foo", 0]) == "/foo/0"
    assert join_pointer([""]) == "/"
    assert join_pointer(["a/b"]) == "/a~1b"
    assert join_pointer(["m~n"]) == "/m~0n"
    assert split_pointer("/~01") == ["~1"]


def test_what_does_not_start_with_a_slash_is_no_pointer() -> None:
    with pytest.raises(ValueError, match="starts with"):
        split_pointer("a/b")
