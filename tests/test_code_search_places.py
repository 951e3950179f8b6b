"""Paths from the root of the machine: in the repository, in another of a workspace, or nowhere."""

import os
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.places import Roots
from cleats.toolsets.code.search.request import read
from tests.search_world import build, shop

CART, STORE, GUIDE, FINDING = (each.path for each in shop())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine.open(build(tmp_path_factory.mktemp("world") / "one", shop()))


def files(engine: Engine, roots: Roots, *paths: str, argument: str = "path") -> set[str]:
    given = {"query": "*", "mode": "all", "top": 100, argument: list(paths)}
    found = engine.search(read(given, roots=roots))
    return {hit.path for hits in found.hits.values() for hit in hits}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src", {CART}),
        ("src/", {CART}),
        ("src/shop/cart.py", {CART}),
        ("**/*.ts", {STORE}),
        ("web/../docs", {GUIDE}),
        ("shop", set()),
        ("", {CART, STORE, GUIDE, FINDING}),
    ],
)
@pytest.mark.parametrize("argument", ["path", "file"])
def test_an_absolute_path_names_exactly_what_is_there(
    engine: Engine, tmp_path: Path, path: str, expected: set[str], argument: str
) -> None:
    asked = os.fspath(tmp_path) + "/" + path

    assert files(engine, Roots(tmp_path), asked, argument=argument) == expected


def test_an_absolute_path_can_be_left_out_and_go_through_a_link(
    engine: Engine, tmp_path: Path
) -> None:
    root, link = tmp_path / "root", tmp_path / "link"
    root.mkdir()
    link.symlink_to(root)

    assert files(engine, Roots(root), f"!{root}/src", f"!{link}/web/") == {GUIDE, FINDING}


def test_a_path_in_another_repository_of_the_workspace_finds_nothing_here(
    engine: Engine, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    roots = Roots(here, (here, there))

    assert files(engine, roots, f"{there}/src/") == set()
    assert files(engine, roots, f"{there}/src", f"{here}/docs") == {GUIDE}


def test_a_path_outside_is_refused_with_the_root_to_start_from(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        read({"query": "*", "path": "/elsewhere/src"}, roots=Roots(tmp_path))

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.message == "path: '/elsewhere/src' is not in the repository"
    assert os.fspath(tmp_path) in caught.value.hint
