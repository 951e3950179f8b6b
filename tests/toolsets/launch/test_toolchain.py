"""Tests of the programs that gates need: found, asked for their version, refused when too old."""

from pathlib import Path

import anyio
import pytest

from cleats.toolsets.launch.gates import registry
from cleats.toolsets.launch.gates.registry import InstalledProgram


def write_program(path: Path, output: str, code: int = 0) -> str:
    path.write_text(f"#!/bin/sh\necho '{output}'\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_the_hugo_of_the_package_is_found_and_says_its_version() -> None:
    tools_by_name = anyio.run(registry.find_programs, ["hugo"], {})

    assert tools_by_name["hugo"].path.endswith(("hugo/binaries/hugo", "hugo.exe"))
    assert tools_by_name["hugo"].version.endswith("+extended")
    assert not tools_by_name["hugo"].is_too_old


def test_what_the_operator_names_comes_first(tmp_path: Path) -> None:
    hugo_path = write_program(tmp_path / "myhugo", "hugo v0.140.2-abc linux/amd64 BuildDate=unknown")

    tools_by_name = anyio.run(registry.find_programs, ["hugo"], {"hugo": hugo_path})

    assert tools_by_name == {"hugo": InstalledProgram("hugo", hugo_path, "0.140.2")}


@pytest.mark.parametrize(("output", "code"), [("nothing of use", 0), ("hugo v0.140.2", 1)])
def test_a_program_that_does_not_say_its_version_is_none(tmp_path: Path, output: str, code: int) -> None:
    hugo_path = write_program(tmp_path / "hugo", output, code)

    assert anyio.run(registry.find_programs, ["hugo"], {"hugo": hugo_path}) == {}


def test_a_program_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert anyio.run(registry.find_programs, ["hugo"], {"hugo": str(tmp_path / "none")}) == {}


def test_the_search_path_is_that_of_the_settings(tmp_path: Path) -> None:
    write_program(tmp_path / "git", "git version 2.10.1")

    tools_by_name = anyio.run(registry.find_programs, ["git"], {"git_env": {"PATH": str(tmp_path)}})

    assert tools_by_name["git"].version == "2.10.1"
    assert tools_by_name["git"].is_too_old


def test_every_tool_has_a_remedy_and_an_oldest_version() -> None:
    assert registry.INSTALL_HINTS.keys() == registry.MIN_VERSIONS.keys()
