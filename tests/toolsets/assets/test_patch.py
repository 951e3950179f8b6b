"""The laws of diff: a patch applies (with another library), is minimal and is sorted."""

import json
import random
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.pointer import split_pointer
from cleats.toolsets.assets.patch import diff_values, is_same_json
from tests.support.requirements import requirement
from tests.support.shell import LAW_SETTINGS

OBJECT_KEYS = st.sampled_from(["", "a", "b", "a/b", "m~n", "~1", "é", "0", "-", "/"])
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, -0.0, 0.5])
    | st.sampled_from(["", "a", "true", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(OBJECT_KEYS, inner, max_size=4),
    max_leaves=12,
)
OPERATION_ORDER = ["remove", "add", "replace"]


def tag_booleans(value: Any) -> Any:
    """Tag booleans, so that `==` is equality of JSON: true is not 1, but 1 is 1.0."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return [tag_booleans(item) for item in value]
    if isinstance(value, dict):
        return {key: tag_booleans(item) for key, item in value.items()}
    return value


def apply_patch(base: Any, patch: list[dict[str, Any]]) -> Any:
    return jsonpatch.JsonPatch(patch).apply(json.loads(json.dumps(base)))


@requirement("d:diff:valid")
@LAW_SETTINGS
@given(JSON_VALUES, JSON_VALUES)
def test_a_patch_applied_to_the_base_gives_the_new_value(base: Any, new: Any) -> None:
    assert tag_booleans(apply_patch(base, diff_values(base, new))) == tag_booleans(new)


@requirement("d:diff:valid")
@LAW_SETTINGS
@given(st.dictionaries(OBJECT_KEYS, JSON_VALUES), st.data())
def test_a_small_change_deep_inside_round_trips_as_well(base: dict[str, Any], data: Any) -> None:
    new = json.loads(json.dumps(base))
    for key in data.draw(st.lists(OBJECT_KEYS, max_size=3)):
        new[key] = data.draw(JSON_VALUES)

    assert tag_booleans(apply_patch(base, diff_values(base, new))) == tag_booleans(new)


@requirement("d:diff:valid")
@LAW_SETTINGS
@given(JSON_VALUES, st.randoms(use_true_random=False))
def test_true_and_1_are_told_apart_wherever_they_are(base: Any, rng: random.Random) -> None:
    new = swap_booleans(base, rng)

    assert tag_booleans(apply_patch(base, diff_values(base, new))) == tag_booleans(new)
    assert (diff_values(base, new) == []) is (tag_booleans(base) == tag_booleans(new))


def swap_booleans(value: Any, rng: random.Random) -> Any:
    """Return a value that is equal in Python but not in JSON: swap some booleans and numbers."""
    if isinstance(value, list):
        return [swap_booleans(item, rng) for item in value]
    if isinstance(value, dict):
        return {key: swap_booleans(item, rng) for key, item in value.items()}
    if rng.random() < 0.5 and (isinstance(value, bool) or value in (0, 1)):
        return int(value) if isinstance(value, bool) else bool(value)
    return value


@LAW_SETTINGS
@given(JSON_VALUES)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert diff_values(value, json.loads(json.dumps(value))) == []


@LAW_SETTINGS
@given(JSON_VALUES, JSON_VALUES)
def test_equal_is_what_equal_json_is(one: Any, other: Any) -> None:
    assert is_same_json(one, other) is (tag_booleans(one) == tag_booleans(other))


def has_value(document: Any, pointer: str) -> bool:
    for key in split_pointer(pointer):
        if key not in document:
            return False
        document = document[key]
    return True


@requirement("d:diff:ops", "d:diff:order")
@LAW_SETTINGS
@given(JSON_VALUES, JSON_VALUES)
def test_operations_are_the_three_allowed_ones_in_their_order(base: Any, new: Any) -> None:
    patch = diff_values(base, new)

    keys = [(op["path"], OPERATION_ORDER.index(op["op"])) for op in patch]
    assert keys == sorted(keys)
    assert all(("value" in op) is (op["op"] != "remove") for op in patch)
    assert all(has_value(base, op["path"]) is (op["op"] != "add") for op in patch)
    assert all(has_value(new, op["path"]) is (op["op"] != "remove") for op in patch)


@LAW_SETTINGS
@given(JSON_VALUES, JSON_VALUES)
def test_no_operation_is_inside_another_so_their_order_does_not_matter(base: Any, new: Any) -> None:
    patch = diff_values(base, new)

    paths = [split_pointer(op["path"]) for op in patch]
    for path in paths:
        assert sum(other[: len(path)] == path for other in paths) == 1
    assert tag_booleans(apply_patch(base, patch[::-1])) == tag_booleans(new)


@LAW_SETTINGS
@given(JSON_VALUES, JSON_VALUES)
def test_every_operation_is_needed(base: Any, new: Any) -> None:
    patch = diff_values(base, new)

    for number in range(len(patch)):
        fewer = patch[:number] + patch[number + 1 :]
        assert tag_booleans(apply_patch(base, fewer)) != tag_booleans(new)


@requirement("d:diff:keys")
@LAW_SETTINGS
@given(JSON_VALUES, JSON_VALUES)
def test_the_order_in_which_keys_are_written_does_not_show(base: Any, new: Any) -> None:
    assert diff_values(reverse_keys(base), reverse_keys(new)) == diff_values(base, new)


def reverse_keys(value: Any) -> Any:
    """Return the value with the keys of every object in reverse order."""
    if isinstance(value, list):
        return [reverse_keys(item) for item in value]
    if isinstance(value, dict):
        return {key: reverse_keys(value[key]) for key in reversed(value)}
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
    result = diff_values(base, new)

    assert tag_booleans(result) == tag_booleans(patch)


def test_documents_as_deep_as_can_be_parsed_are_compared() -> None:
    base: Any = None
    new: Any = None
    for _ in range(900):
        base, new = {"a": base}, {"a": new, "b": 1}

    assert len(diff_values(base, new)) == 900
