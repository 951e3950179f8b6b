"""Risk in an index: rules that a repository brings, and names that only an import explains."""

from pathlib import Path

import msgspec
import pytest

from tests.index_world import World

RULE = """
[[source]]
id = "ours.parcel"
name = "parcel"
category = "input"
tags = ["post"]
confidence = 0.9
languages = ["python"]
patterns = ["open_parcel"]
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def flows(world: World) -> list[str]:
    rows = world.rows("SELECT risk FROM chunks WHERE risk IS NOT NULL")
    risks = [msgspec.msgpack.decode(risk) for (risk,) in rows]
    return [flow for risk in risks for flow in risk.get("flows", [])]


def test_a_repository_can_bring_rules_of_its_own(world: World) -> None:
    world.write("desk.py", "def run():\n    eval(open_parcel())\n")
    world.build()
    before = flows(world)

    world.write(".cleats/risk/post.toml", RULE)
    world.build()

    assert before == []
    assert len(flows(world)) == 1
    assert not world.build().published


def test_a_rule_that_cannot_be_read_is_said_and_costs_only_itself(world: World) -> None:
    world.write("desk.py", "import os\ndef run():\n    eval(os.environ['X'])\n")
    world.write(".cleats/risk/broken.toml", RULE.replace("patterns", "pattern"))

    report = world.build()

    assert any("broken.toml" in warning for warning in report.warnings)
    assert len(flows(world)) == 1


def test_a_name_means_what_its_file_imported(world: World) -> None:
    call = "def go(request):\n    return loads(request.args.get('x'))\n"
    world.write("pickles.py", "from pickle import loads\n" + call)
    world.write("texts.py", "from json import loads\n" + call)

    world.build()

    assert len(flows(world)) == 1
