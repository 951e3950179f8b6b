"""Risk in an index: rules that a repository defines, and names that only an import explains."""

from pathlib import Path

import msgspec
import pytest

from tests.support.indexes import IndexedRepository

RULES_SOURCE = """
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
def world(tmp_path: Path) -> IndexedRepository:
    return IndexedRepository(tmp_path)


def read_flows(world: IndexedRepository) -> list[str]:
    rows = world.select_rows("SELECT risk FROM chunks WHERE risk IS NOT NULL")
    risks = [msgspec.msgpack.decode(risk) for (risk,) in rows]
    return [flow for risk in risks for flow in risk.get("flows", [])]


def test_a_repository_can_bring_rules_of_its_own(world: IndexedRepository) -> None:
    world.write_file("desk.py", "def run():\n    eval(open_parcel())\n")
    world.build_index()
    before = read_flows(world)

    world.write_file(".cleats/risk/post.toml", RULES_SOURCE)
    world.build_index()

    assert before == []
    assert len(read_flows(world)) == 1
    assert not world.build_index().published


def test_a_rule_that_cannot_be_read_is_said_and_costs_only_itself(world: IndexedRepository) -> None:
    world.write_file("desk.py", "import os\ndef run():\n    eval(os.environ['X'])\n")
    world.write_file(".cleats/risk/broken.toml", RULES_SOURCE.replace("patterns", "pattern"))

    report = world.build_index()

    assert any("broken.toml" in warning for warning in report.warnings)
    assert len(read_flows(world)) == 1


def test_a_name_means_what_its_file_imported(world: IndexedRepository) -> None:
    call = "def go(request):\n    return loads(request.args.get('x'))\n"
    world.write_file("pickles.py", "from pickle import loads\n" + call)
    world.write_file("texts.py", "from json import loads\n" + call)

    world.build_index()

    assert len(read_flows(world)) == 1
