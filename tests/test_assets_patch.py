"""The laws of diff: it applies, it is minimal, it is sorted. Another library applies it."""

import json
import random
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.pointer import tokens
from cleats.toolsets.assets.patch import diff, same
from tests.requirements import requirement
from tests.shell import LAW

KEYS = st.sampled_from(["", "a", "b", "a/b", "m~n", "~1", "é", "0", "-", "/"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, -0.0, 0.5])
    | st.sampled_from(["", "a", "true", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ORDER = ["remove", "add", "replace"]


def strict(value: Any) -> Any:
    """A value in which `==` is equality of JSON: true is not 1, but 1 is 1.0."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return [strict(each) for each in value]
    if isinstance(value, dict):
        return {key: strict(each) for key, each in value.items()}
    return value


def apply(base: Any, patch: list[dict[str, Any]]) -> Any:
    return jsonpatch.JsonPatch(patch).apply(json.loads(json.dumps(base)))


@requirement("d:diff:valid")
@LAW
@given(VALUES, VALUES)
def test_a_patch_applied_to_the_base_gives_the_new_value(base: Any, new: Any) -> None:
    assert strict(apply(base, diff(base, new))) == strict(new)


@requirement("d:diff:valid")
@LAW
@given(st.dictionaries(KEYS, VALUES), st.data())
def test_a_small_change_deep_inside_round_trips_as_well(base: dict[str, Any], data: Any) -> None:
    new = json.loads(json.dumps(base))
    for key in data.draw(st.lists(KEYS, max_size=3)):
        new[key] = data.draw(VALUES)

    assert strict(apply(base, diff(base, new))) == strict(new)


@requirement("d:diff:valid")
@LAW
@given(VALUES, st.randoms(use_true_random=False))
def test_true_and_1_are_told_apart_wherever_they_are(base: Any, chance: random.Random) -> None:
    new = confused(base, chance)

    assert strict(apply(base, diff(base, new))) == strict(new)
    assert (diff(base, new) == []) is (strict(base) == strict(new))


def confused(value: Any, chance: random.Random) -> Any:
    """The same for Python, another for JSON: some truths become numbers and the reverse."""
    if isinstance(value, list):
        return [confused(each, chance) for each in value]
    if isinstance(value, dict):
        return {key: confused(each, chance) for key, each in value.items()}
    if chance.random() < 0.5 and (isinstance(value, bool) or value in (0, 1)):
        return int(value) if isinstance(value, bool) else bool(value)
    return value


@LAW
@given(VALUES)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert diff(value, json.loads(json.dumps(value))) == []


@LAW
@given(VALUES, VALUES)
def test_equal_is_what_equal_json_is(one: Any, other: Any) -> None:
    assert same(one, other) is (strict(one) == strict(other))


@requirement("d:diff:ops", "d:diff:order")
@LAW
@given(VALUES, VALUES)
def test_operations_are_the_three_allowed_ones_in_their_order(base: Any, new: Any) -> None:
    patch = diff(base, new)

    keys = [(op["path"], ORDER.index(op["op"])) for op in patch]
    assert keys == sorted(keys)
    assert all(("value" in op) is (op["op"] != "remove") for op in patch)


@LAW
@given(VALUES, VALUES)
def test_no_operation_is_inside_another_so_their_order_does_not_matter(base: Any, new: Any) -> None:
    patch = diff(base, new)

    paths = [tokens(op["path"]) for op in patch]
    for path in paths:
        assert sum(other[: len(path)] == path for other in paths) == 1
    assert strict(apply(base, patch[::-1])) == strict(new)


@LAW
@given(VALUES, VALUES)
def test_every_operation_is_needed(base: Any, new: Any) -> None:
    patch = diff(base, new)

    for number in range(len(patch)):
        fewer = patch[:number] + patch[number + 1 :]
        assert strict(apply(base, fewer)) != strict(new)


@requirement("d:diff:keys")
@LAW
@given(VALUES, VALUES)
def test_the_order_in_which_keys_are_written_does_not_show(base: Any, new: Any) -> None:
    assert diff(turned(base), turned(new)) == diff(base, new)


def turned(value: Any) -> Any:
    """The same with the keys of every object written backwards."""
    if isinstance(value, list):
        return [turned(each) for each in value]
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return value


@requirement("d:diff:arrays")
@pytest.mark.parametrize(
    ("base", "new", "patch"),
    [
        ([1, 2], [1, 3], [{"op": "replace", "path": "", "value": [1, 3]}]),
        ({"a": [{}]}, {"a": [{"b": 1}]}, [{"op": "replace", "path": "/a", "value": [{"b": 1}]}]),
        ({"a": []}, {"a": {}}, [{"op": "replace", "path": "/a", "value": {}}]),
        ({"a": [True]}, {"a": [1]}, [{"op": "replace", "path": "/a", "value": [1]}]),
        ({"a": [1]}, {"a": [1.0]}, []),
        (0, False, [{"op": "replace", "path": "", "value": False}]),
        ({"": 1}, {"": 2}, [{"op": "replace", "path": "/", "value": 2}]),
        ({"a": 1}, {"a": None}, [{"op": "replace", "path": "/a", "value": None}]),
        ({}, {"a": None}, [{"op": "add", "path": "/a", "value": None}]),
        (None, {}, [{"op": "replace", "path": "", "value": {}}]),
    ],
)
def test_arrays_and_other_kinds_are_replaced_whole(base: Any, new: Any, patch: Any) -> None:
    found = diff(base, new)

    assert strict(found) == strict(patch)


def test_documents_as_deep_as_can_be_parsed_are_compared() -> None:
    base: Any = None
    new: Any = None
    for _ in range(900):
        base, new = {"a": base}, {"a": new, "b": 1}

    assert len(diff(base, new)) == 900
