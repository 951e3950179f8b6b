"""The programs that gates need: found, asked for their version, refused when too old."""

from pathlib import Path

import anyio
import pytest

from cleats.toolsets.launch import toolchain
from cleats.toolsets.launch.toolchain import Tool


def program(path: Path, said: str, code: int = 0) -> str:
    path.write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_the_hugo_of_the_package_is_found_and_says_its_version() -> None:
    found = anyio.run(toolchain.find, ["hugo"], {})

    assert found["hugo"].path.endswith(("hugo/binaries/hugo", "hugo.exe"))
    assert found["hugo"].version.endswith("+extended")
    assert not found["hugo"].too_old


def test_what_the_operator_names_comes_first(tmp_path: Path) -> None:
    own = program(tmp_path / "myhugo", "hugo v0.140.2-abc linux/amd64 BuildDate=unknown")

    found = anyio.run(toolchain.find, ["hugo"], {"hugo": own})

    assert found == {"hugo": Tool("hugo", own, "0.140.2")}


@pytest.mark.parametrize(("said", "code"), [("nothing of use", 0), ("hugo v0.140.2", 1)])
def test_a_program_that_does_not_say_its_version_is_none(
    tmp_path: Path, said: str, code: int
) -> None:
    own = program(tmp_path / "hugo", said, code)

    assert anyio.run(toolchain.find, ["hugo"], {"hugo": own}) == {}


def test_a_program_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert anyio.run(toolchain.find, ["hugo"], {"hugo": str(tmp_path / "none")}) == {}


def test_the_search_path_is_that_of_the_settings(tmp_path: Path) -> None:
    program(tmp_path / "git", "git version 2.10.1")

    found = anyio.run(toolchain.find, ["git"], {"git_env": {"PATH": str(tmp_path)}})

    assert found["git"].version == "2.10.1"
    assert found["git"].too_old


def test_every_tool_has_a_remedy_and_an_oldest_version() -> None:
    assert toolchain.REMEDIES.keys() == toolchain.OLDEST.keys()
