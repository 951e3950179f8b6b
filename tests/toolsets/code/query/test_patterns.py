"""Absolute paths: in the repository, in another repository of a workspace, or in neither."""

import os
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.query.request import SearchRoots, parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.retrieval import search_generation
from tests.support.search import build_generation, build_shop_files

CART_PATH, STORE_PATH, GUIDE_PATH, FINDING_PATH = (shop_file.path for shop_file in build_shop_files())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> SearchEngine:
    return SearchEngine.open(build_generation(tmp_path_factory.mktemp("world") / "one", build_shop_files()))


def find_files(engine: SearchEngine, roots: SearchRoots, *paths: str, argument: str = "path") -> set[str]:
    request = {"query": "*", "mode": "all", "top": 100, argument: list(paths)}
    result = search_generation(engine, parse_request(request, roots=roots))
    return {hit.path for hits in result.hits.values() for hit in hits}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src", {CART_PATH}),
        ("src/", {CART_PATH}),
        ("src/shop/cart.py", {CART_PATH}),
        ("**/*.ts", {STORE_PATH}),
        ("web/../docs", {GUIDE_PATH}),
        ("shop", set()),
        ("", {CART_PATH, STORE_PATH, GUIDE_PATH, FINDING_PATH}),
    ],
)
@pytest.mark.parametrize("argument", ["path", "file"])
def test_an_absolute_path_names_exactly_what_is_there(
    engine: SearchEngine, tmp_path: Path, path: str, expected: set[str], argument: str
) -> None:
    absolute_path = os.fspath(tmp_path) + "/" + path

    assert find_files(engine, SearchRoots(tmp_path), absolute_path, argument=argument) == expected


def test_an_absolute_path_can_be_left_out_and_go_through_a_link(engine: SearchEngine, tmp_path: Path) -> None:
    root, link = tmp_path / "root", tmp_path / "link"
    root.mkdir()
    link.symlink_to(root)

    assert find_files(engine, SearchRoots(root), f"!{root}/src", f"!{link}/web/") == {GUIDE_PATH, FINDING_PATH}


def test_a_path_in_another_repository_of_the_workspace_finds_nothing_here(engine: SearchEngine, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    roots = SearchRoots(here, (here, there))

    assert find_files(engine, roots, f"{there}/src/") == set()
    assert find_files(engine, roots, f"{there}/src", f"{here}/docs") == {GUIDE_PATH}


def test_a_path_outside_is_refused_with_the_root_to_start_from(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        parse_request({"query": "*", "path": "/elsewhere/src"}, roots=SearchRoots(tmp_path))

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.message == "path: '/elsewhere/src' is not in the repository"
    assert os.fspath(tmp_path) in caught.value.hint
