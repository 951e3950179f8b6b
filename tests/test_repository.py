"""The repository itself: nothing in it belongs to one machine, and it says what it is."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from tests.requirements import requirement

ROOT = Path(__file__).parent.parent

# In pieces, because this file is in the repository too.
HOSTS = ("py" + "pi.org", "python" + "hosted.org", "registry.npm" + "js.org", "deb." + "debian.org")
# A short path, such as /src, may be a word of any text.
PLACES = [
    f"{place}/" for place in (Path.home(), ROOT) if len(place.parts) > 2 or place.name == "root"
]


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an unpacked archive has no file list")
def test_no_file_names_a_package_index_or_a_place_on_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {needle}"
        for path in tracked()
        for needle in (*HOSTS, *PLACES)
        if needle.encode() in path.read_bytes()
    ]

    assert found == []


def test_every_module_can_be_read_in_one_sitting() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "src").rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 400
    }

    assert long == {}


def test_the_readme_shows_the_two_commands_and_the_checks_run_them() -> None:
    readme = (ROOT / "README.md").read_text()

    assert "make demo" in readme
    assert "make test" in readme
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_changelog_knows_the_version() -> None:
    heading = f"## {TOOLING_VERSION} (contract {SCHEMA_VERSION})"

    assert heading in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_is_locked_with_its_hash() -> None:
    lock = (ROOT / "requirements" / "dev.txt").read_text()
    pins = [line for line in lock.splitlines() if line and line[0].isalpha()]

    assert pins
    assert all("==" in pin and pin.endswith("\\") for pin in pins)
    assert lock.count("--hash=sha256:") >= len(pins)


@requirement("d:package:install")
def test_requirements_txt_is_the_lock_and_the_lock_has_what_the_package_needs() -> None:
    listed = (ROOT / "requirements.txt").read_text().splitlines()
    lock = (ROOT / "requirements" / "dev.txt").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [re.split(r"[^\w.-]", line)[0] for line in project["dependencies"]]

    # Old pips hold what is asked for with extras, as psycopg[pool], to constraints only.
    asked = [line for line in listed if not line.startswith("#")]
    assert asked == ["-c requirements/dev.txt", "-r requirements/dev.txt"]
    assert [name for name in needed if f"\n{name}==" not in f"\n{lock}"] == []


@requirement("d:package:install")
def test_every_locked_version_is_one_that_the_package_takes() -> None:
    lock = (ROOT / "requirements" / "dev.txt").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE))

    needed = [Requirement(line) for line in project["dependencies"]]

    assert [str(each) for each in needed if not each.specifier.contains(locked[each.name])] == []


@requirement("d:python")
def test_python_3_11_is_enough() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["requires-python"] == ">=3.11"
