"""The official repository of schemas and examples works as it is."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.settings import make_settings
from cleats.toolsets.assets.tools import AssetTools, load_assets
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement

FIXTURE_FILE = REPOSITORY_ROOT / "tests" / "fixtures" / "synesthetic_schemas" / "files.json"
COMPONENT_EXAMPLES = ("Control-Bundle", "Haptic", "Rule-Bundle", "Shader", "Tone")


def write_clone(folder: Path, *, examples: str) -> Path:
    """Write the official files as a clone, its examples in a given folder."""
    for path, document in json.loads(FIXTURE_FILE.read_text()).items():
        file = folder / path.replace("docs/examples/0.7.3", examples)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("" if document is None else json.dumps(document))
    return folder


def call_tool(run: Any, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = anyio.run(run, arguments, None)
    return answer


@pytest.fixture(params=["clone-at-head", "clone-at-seed-time", "submodule", "folders"])
def official_tools(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AssetTools:
    """Return the tools over the official files, found in each way that there is."""
    if request.param == "submodule":
        write_clone(tmp_path / "libs" / "synesthetic-schemas", examples="examples")
        monkeypatch.chdir(tmp_path)
        return load_assets(make_settings())
    examples = "examples" if request.param == "clone-at-seed-time" else "docs/examples/0.7.3"
    clone = write_clone(tmp_path / "clone", examples=examples)
    if request.param == "folders":
        return load_assets(make_settings(schemas_dir=str(clone / "jsonschema"), examples_dir=str(clone / examples)))
    return load_assets(make_settings(schemas_dir=str(clone)))


@requirement("d:alias:examples", "d:sources:submodule", "d:sources:environment")
def test_every_official_example_validates_against_its_schema(official_tools: AssetTools) -> None:
    rows = call_tool(official_tools.list_examples, component="all")["examples"]

    answers = {Path(row["path"]).name: call_tool(official_tools.get_example, path=row["path"]) for row in rows}

    assert official_tools.validator.broken_schemas == {}
    assert len(call_tool(official_tools.list_schemas)["schemas"]) == 9
    assert {name for name, answer in answers.items() if not answer["validated"]} == {"ShaderLib_Example.json"}
    assert len(answers) == 16
    for component in COMPONENT_EXAMPLES:
        assert answers[f"{component}_Example.json"]["schema"] == component.lower()


@requirement("d:alias:examples", "d:alias")
def test_every_official_asset_validates_as_a_nested_asset(official_tools: AssetTools) -> None:
    rows = call_tool(official_tools.list_examples, component="synesthetic-asset")["examples"]
    assets = [call_tool(official_tools.get_example, path=row["path"])["example"] for row in rows]

    answers = [
        call_tool(official_tools.validate_asset, asset=asset, schema="nested-synesthetic-asset") for asset in assets
    ]

    assert len(answers) == 10
    assert all(answer["ok"] for answer in answers)
