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


def test_an_edit_that_changes_no_function_keeps_the_risks_and_links_nothing_again(
    tmp_path: Path, world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = "from app.sink import run\n\n\ndef read():\n    return run(input())\n"
    world.write_file("app/sink.py", "def run(value):\n    return eval(value)\n")
    world.write_file("app/reader.py", reader)
    world.build_index()
    world.write_file("app/reader.py", reader + "# A last line.\n")
    monkeypatch.setattr("cleats.toolsets.code.index.ingest.update_links", None)

    world.build_index()

    monkeypatch.undo()
    fresh = IndexedRepository(tmp_path, cache_name="other", clock=world.clock)
    fresh.build_index()
    assert world.read_content() == fresh.read_content()
    assert "eval" in str(world.select_rows("SELECT risk FROM chunks WHERE name = 'read'"))


def test_a_file_keeps_its_risks_when_another_takes_new_numbers(tmp_path: Path, world: IndexedRepository) -> None:
    world.write_file("a.py", "def first():\n    return eval(input())\n")
    world.write_file("b.py", "def second():\n    return first()\n")
    world.build_index()
    world.write_file("a.py", "def other():\n    return 1\n\n\ndef first():\n    return eval(input())\n")
    world.write_file("b.py", "# New.\ndef second():\n    return first()\n")

    world.build_index()

    fresh = IndexedRepository(tmp_path, cache_name="other", clock=world.clock)
    fresh.build_index()
    assert world.read_content() == fresh.read_content()
