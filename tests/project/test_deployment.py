"""The files in `deploy/` use commands, settings and metrics that exist."""

import configparser
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from cleats.cli.main import cli
from cleats.settings import SETTINGS_BY_NAME
from tests.support.paths import REPOSITORY_ROOT
from tests.transports.http.test_metrics import METRIC_FAMILIES

DEPLOY_FOLDER = REPOSITORY_ROOT / "deploy"
UNIT_FILES = sorted((DEPLOY_FOLDER / "systemd").glob("*.service"))
SETTING_VARIABLES = {setting.variable for setting in SETTINGS_BY_NAME.values()}


def read_compose() -> dict[str, Any]:
    compose: dict[str, Any] = yaml.safe_load((DEPLOY_FOLDER / "container" / "compose.yaml").read_text())
    return compose


def find_unknown_options(arguments: list[str]) -> list[str]:
    """Return the options of a `cleats` command line that the command does not have."""
    command, *rest = arguments
    help_page = CliRunner().invoke(cli, [command, "--help"]).output
    return [word for word in rest if word.startswith("--") and f"{word} " not in help_page]


def find_unknown_metrics(text: str) -> set[str]:
    names = {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in re.findall(r"\bcleats_[a-z_]+", text)}
    return names - set(METRIC_FAMILIES)


@pytest.mark.parametrize("path", UNIT_FILES, ids=lambda path: path.name)
def test_a_systemd_unit_starts_a_command_with_options_that_exist(path: Path) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign] # names of options have capitals
    unit.read(path)

    program, *arguments = shlex.split(unit["Service"]["ExecStart"])

    assert program.endswith("/cleats")
    assert find_unknown_options(arguments) == []
    assert set(re.findall(r"CLEATS_\w+", path.read_text())) <= SETTING_VARIABLES


def test_the_compose_file_starts_commands_and_uses_settings_that_exist() -> None:
    compose = read_compose()
    services = compose["services"]
    volumes = {
        volume.split(":")[0]
        for service in services.values()
        for volume in service.get("volumes", ())
        if not volume.startswith("$")
    }

    assert find_unknown_options(services["server"]["command"]) == []
    assert find_unknown_options(services["worker"]["command"]) == []
    assert {name for name in services["server"]["environment"] if name.startswith("CLEATS_")} <= SETTING_VARIABLES
    assert volumes == set(compose["volumes"])
    assert set(services["server"]["depends_on"]) <= set(services)


def test_the_container_file_copies_files_and_installs_extras_that_exist() -> None:
    text = (DEPLOY_FOLDER / "container" / "Containerfile").read_text()
    copied = [word for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE) for word in line.split()[:-1]]
    extras = re.findall(r"/src\[([\w,]+)\]", text)[0].split(",")
    project = (REPOSITORY_ROOT / "pyproject.toml").read_text()

    assert [path for path in copied if not (REPOSITORY_ROOT / path).exists()] == []
    assert [extra for extra in extras if f"\n{extra} = [" not in project] == []
    assert set(re.findall(r"CLEATS_\w+", text)) <= SETTING_VARIABLES


def test_alerts_and_dashboard_use_metrics_that_the_server_has() -> None:
    alerts = yaml.safe_load((DEPLOY_FOLDER / "monitoring" / "alerts.yaml").read_text())
    dashboard = json.loads((DEPLOY_FOLDER / "monitoring" / "dashboard.json").read_text())
    expressions = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]

    assert find_unknown_metrics(" ".join(expressions)) == set()
    assert find_unknown_metrics(" ".join(queries)) == set()
    assert len(queries) >= len(dashboard["panels"])
