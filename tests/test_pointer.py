"""JSON Pointers, as RFC 6901 has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.pointer import pointer, tokens


@given(st.lists(st.text()))
def test_splitting_undoes_joining(parts: list[str]) -> None:
    assert tokens(pointer(parts)) == parts


@given(st.lists(st.text()), st.lists(st.text()))
def test_different_paths_have_different_pointers(one: list[str], other: list[str]) -> None:
    assert (pointer(one) == pointer(other)) == (one == other)


def test_the_examples_of_the_rfc() -> None:
    assert pointer([]) == ""
    assert pointer(["foo", 0]) == "/foo/0"
    assert pointer([""]) == "/"
    assert pointer(["a/b"]) == "/a~1b"
    assert pointer(["m~n"]) == "/m~0n"
    assert tokens("/~01") == ["~1"]


def test_what_does_not_start_with_a_slash_is_no_pointer() -> None:
    with pytest.raises(ValueError, match="starts with"):
        tokens("a/b")
