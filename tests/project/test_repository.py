"""Tests of the repository itself: nothing in it belongs to one machine, and it describes itself."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement

# In pieces, because this file is in the repository too.
INDEX_HOSTS = ("py" + "pi.org", "python" + "hosted.org", "registry.npm" + "js.org", "deb." + "debian.org")
# A short path, such as /src, may be a word of any text.
MACHINE_PATHS = [
    f"{place}/" for place in (Path.home(), REPOSITORY_ROOT) if len(place.parts) > 2 or place.name == "root"
]


def list_tracked_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY_ROOT, capture_output=True, check=True).stdout
    return [
        REPOSITORY_ROOT / name for name in listing.decode().split("\0") if name and (REPOSITORY_ROOT / name).is_file()
    ]


@pytest.mark.skipif(not (REPOSITORY_ROOT / ".git").exists(), reason="an unpacked archive has no file list")
def test_no_file_names_a_package_index_or_a_place_on_one_machine() -> None:
    matches = [
        f"{path.relative_to(REPOSITORY_ROOT)}: {needle}"
        for path in list_tracked_files()
        for needle in (*INDEX_HOSTS, *MACHINE_PATHS)
        if needle.encode() in path.read_bytes()
    ]

    assert matches == []


def test_every_module_can_be_read_in_one_sitting() -> None:
    long = {
        str(path.relative_to(REPOSITORY_ROOT)): lines
        for path in (REPOSITORY_ROOT / "src").rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 400
    }

    assert long == {}


def test_the_readme_shows_the_two_commands_and_the_checks_run_them() -> None:
    readme = (REPOSITORY_ROOT / "README.md").read_text()

    assert "make demo" in readme
    assert "make test" in readme
    assert "make test" in (REPOSITORY_ROOT / ".ci" / "run").read_text()


def test_the_changelog_knows_the_version() -> None:
    heading = f"## {TOOLING_VERSION} (contract {SCHEMA_VERSION})"

    assert heading in (REPOSITORY_ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_is_locked_with_its_hash() -> None:
    lock = (REPOSITORY_ROOT / "requirements" / "dev.txt").read_text()
    pins = [line for line in lock.splitlines() if line and line[0].isalpha()]

    assert pins
    assert all("==" in pin and pin.endswith("\\") for pin in pins)
    assert lock.count("--hash=sha256:") >= len(pins)


@requirement("d:package:install")
def test_requirements_txt_is_the_lock_and_the_lock_has_what_the_package_needs() -> None:
    lines = (REPOSITORY_ROOT / "requirements.txt").read_text().splitlines()
    lock = (REPOSITORY_ROOT / "requirements" / "dev.txt").read_text()
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())["project"]
    needed = [re.split(r"[^\w.-]", line)[0] for line in project["dependencies"]]

    # Old pips hold what is asked for with extras, as psycopg[pool], to constraints only.
    requirement_lines = [line for line in lines if not line.startswith("#")]
    assert requirement_lines == ["-c requirements/dev.txt", "-r requirements/dev.txt"]
    assert [name for name in needed if f"\n{name}==" not in f"\n{lock}"] == []


@requirement("d:package:install")
def test_every_locked_version_is_one_that_the_package_takes() -> None:
    lock = (REPOSITORY_ROOT / "requirements" / "dev.txt").read_text()
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())["project"]
    locked_versions = dict(re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE))

    needed = [Requirement(line) for line in project["dependencies"]]

    assert [
        str(dependency) for dependency in needed if not dependency.specifier.contains(locked_versions[dependency.name])
    ] == []


@requirement("d:python")
def test_python_3_11_is_enough() -> None:
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())["project"]

    assert project["requires-python"] == ">=3.11"
