"""Tests that the lists of files in `docs/design.md` lead from the entry point to the work."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY_ROOT

PACKAGE_FOLDER = REPOSITORY_ROOT / "src" / "cleats"
DESIGN_PAGE = (REPOSITORY_ROOT / "docs" / "design.md").read_text()
PATHS_SECTION = DESIGN_PAGE.partition("## Follow a request\n")[2].partition("\n## ")[0]
PATHS_BY_REQUEST = {
    title: re.findall(r"^\d+\. `([\w/.]+\.py)`", text, re.MULTILINE)
    for title, _, text in (part.partition("\n") for part in PATHS_SECTION.split("\n### ")[1:])
}


def list_imported_files(path: Path) -> Iterator[Path]:
    """Yield the files of the package that a module imports anywhere, by module or by name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cleats"):
            parts = str(node.module).split(".")[1:]
            for names in ([*parts, alias.name] for alias in node.names):
                yield PACKAGE_FOLDER.joinpath(*names).with_suffix(".py")
            yield PACKAGE_FOLDER.joinpath(*parts).with_suffix(".py")
            yield PACKAGE_FOLDER.joinpath(*parts, "__init__.py")


def test_the_page_follows_the_seven_requests() -> None:
    assert list(PATHS_BY_REQUEST) == [
        "An MCP `search` call",
        "`cleats index`",
        "A launch run",
        "A `skill` call",
        "`validate_asset` over rpc",
        "`POST /search`",
        "`cleats contract check`",
    ]


@pytest.mark.parametrize("request_title", PATHS_BY_REQUEST)
def test_every_file_of_a_path_is_imported_by_one_before_it(request_title: str) -> None:
    paths = [PACKAGE_FOLDER / name for name in PATHS_BY_REQUEST[request_title]]
    reachable = {paths[0]}
    unreachable = []

    for path in paths:
        if path not in reachable:
            unreachable.append(path.relative_to(PACKAGE_FOLDER).as_posix())
        reachable.update(list_imported_files(path))

    assert len(paths) >= 6
    assert unreachable == []


def test_every_file_that_the_page_names_exists() -> None:
    names = re.findall(r"`((?:[\w]+/)+\w+\.py)`", DESIGN_PAGE)
    missing = [
        name
        for name in names
        if not any(
            (folder / name).is_file()
            for folder in (
                PACKAGE_FOLDER,
                PACKAGE_FOLDER / "toolsets",
                PACKAGE_FOLDER / "toolsets" / "code",
                REPOSITORY_ROOT,
            )
        )
    ]

    assert len(names) > 40
    assert missing == []
