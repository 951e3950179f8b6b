"""The places of faults are the same, and exact, on every surface."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.payload import ENVELOPE, FLAT
from tests.contract.test_violations import NASTY_KEYS, find_by_oracle
from tests.support.requirements import requirement
from tests.support.shell import Shell
from tests.support.surfaces import SurfaceClient, open_all_surfaces

SURFACES = ("mcp", "rpc", "legacy", "http", "cli")
LEAF_SCHEMA = {"type": "integer"}
ASSET_SCHEMA = {
    "type": "object",
    "properties": {key: {"type": "string", "properties": dict.fromkeys(NASTY_KEYS, LEAF_SCHEMA)} for key in NASTY_KEYS},
}
ASSET = {key: dict.fromkeys(NASTY_KEYS, "x") for key in NASTY_KEYS}


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SurfaceClient]]:
    home: Path = tmp_path_factory.mktemp("home")
    (home / "schemas").mkdir()
    (home / "schemas" / "nasty.schema.json").write_text(json.dumps(ASSET_SCHEMA))
    with open_all_surfaces(home, SYN_SCHEMAS_DIR=str(home / "schemas")) as clients:
        yield clients


@requirement("d:errors:pointers", "d:errors:order")
@pytest.mark.parametrize("surface", SURFACES)
def test_validate_asset_reports_every_fault_at_its_place(surfaces: dict[str, SurfaceClient], surface: str) -> None:
    answer = surfaces[surface].call("validate_asset", FLAT, {"asset": ASSET, "schema": "nasty"})

    paths = [error["path"] for error in answer.payload["errors"]]
    assert paths == sorted(path for path, _ in find_by_oracle(ASSET_SCHEMA, ASSET))


@requirement("d:errors:pointers")
@pytest.mark.parametrize("surface", SURFACES)
def test_wrong_arguments_are_reported_at_their_places(surfaces: dict[str, SurfaceClient], surface: str) -> None:
    meta: dict[str, Any] = {key: {} for key in NASTY_KEYS}

    answer = surfaces[surface].call("triage_ingest", ENVELOPE, {"source": "generic", "inputPath": "x", "meta": meta})

    places = set(_collect_values(answer.payload, "instancePath"))
    escaped_keys = (key.replace("~", "~0").replace("/", "~1") for key in NASTY_KEYS)
    assert places - {"/meta"} == {f"/meta/{key}" for key in escaped_keys}


@requirement("d:errors:pointers", "d:cli:validate")
def test_the_command_line_reports_every_fault_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "nasty.schema.json").write_text(json.dumps(ASSET_SCHEMA))
    (tmp_path / "nasty.json").write_text(json.dumps(ASSET))

    process = Shell(tmp_path).run("assets", "validate", "nasty.json", "--schemas", ".", "--json")

    [result] = json.loads(process.stdout)["results"]
    expected = {path for path, _ in find_by_oracle(ASSET_SCHEMA, ASSET)}
    assert {error["path"] for error in result["errors"]} == expected


def _collect_values(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        if key in value:
            yield value[key]
        for item in value.values():
            yield from _collect_values(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _collect_values(item, key)
