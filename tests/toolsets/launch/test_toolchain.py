"""Tests of the programs that gates need: found, asked for their version, refused when too old."""

from pathlib import Path

import anyio
import pytest

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.gates import registry
from cleats.toolsets.launch.site import programs as programs_module
from cleats.toolsets.launch.site.programs import InstalledProgram


def write_program(path: Path, output: str, code: int = 0) -> str:
    path.write_text(f"#!/bin/sh\necho '{output}'\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_the_hugo_of_the_package_is_found_and_says_its_version() -> None:
    tools_by_name = anyio.run(programs_module.find_programs, ["hugo"], {})

    assert tools_by_name["hugo"].path.endswith(("hugo/binaries/hugo", "hugo.exe"))
    assert tools_by_name["hugo"].version.endswith("+extended")
    assert not tools_by_name["hugo"].is_too_old


def test_what_the_operator_names_comes_first(tmp_path: Path) -> None:
    hugo_path = write_program(tmp_path / "myhugo", "hugo v0.140.2-abc linux/amd64 BuildDate=unknown")

    tools_by_name = anyio.run(programs_module.find_programs, ["hugo"], {"hugo": hugo_path})

    assert tools_by_name == {"hugo": InstalledProgram("hugo", hugo_path, "0.140.2")}


@pytest.mark.parametrize(
    ("output", "code", "reason"),
    [
        ("nothing of use", 0, "asked for its version, it ended with exit code 0: nothing of use"),
        ("hugo v0.140.2", 1, "asked for its version, it ended with exit code 1: hugo v0.140.2"),
    ],
)
def test_a_program_that_does_not_say_its_version_does_not_work(
    tmp_path: Path, output: str, code: int, reason: str
) -> None:
    hugo_path = write_program(tmp_path / "hugo", output, code)

    programs = anyio.run(programs_module.find_programs, ["hugo"], {"hugo": hugo_path})

    assert programs == {"hugo": InstalledProgram("hugo", hugo_path, "", reason)}
    assert not programs["hugo"].is_too_old


def test_a_program_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert anyio.run(programs_module.find_programs, ["hugo"], {"hugo": str(tmp_path / "none")}) == {}


def test_the_search_path_is_that_of_the_settings(tmp_path: Path) -> None:
    write_program(tmp_path / "git", "git version 2.10.1")

    tools_by_name = anyio.run(programs_module.find_programs, ["git"], {"git_env": {"PATH": str(tmp_path)}})

    assert tools_by_name["git"].version == "2.10.1"
    assert tools_by_name["git"].is_too_old


def test_a_program_that_is_too_old_is_refused_with_the_version_that_will_do(tmp_path: Path) -> None:
    hugo_path = write_program(tmp_path / "hugo", "hugo v0.111.3+extended linux/amd64")
    gate = registry.load_gate("hugo_build")

    with pytest.raises(ToolError) as refused:
        anyio.run(registry.require_programs, [gate], {"hugo": hugo_path}, "local")

    assert "hugo 0.111.3+extended is too old; 0.128.0 or newer is required" in refused.value.message
    assert refused.value.details["too_old"] == {"hugo": "0.111.3+extended"}


@pytest.mark.parametrize("filling", ["", "x" * 200])
def test_only_the_end_of_a_long_output_is_quoted(tmp_path: Path, filling: str) -> None:
    text = "\n".join(f"line {number} {filling}" for number in range(50))
    hugo_path = write_program(tmp_path / "hugo", text, 2)

    fault = anyio.run(programs_module.find_programs, ["hugo"], {"hugo": hugo_path})["hugo"].fault

    assert len(fault) < 400
    assert "line 49" in fault
    assert "line 46" not in fault


def test_every_tool_has_a_remedy_and_an_oldest_version() -> None:
    assert programs_module.INSTALL_HINTS.keys() == programs_module.MIN_VERSIONS.keys()
