"""The shape of an answer: what a hit says, compact and full, and how hits gather by file."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.output import payload
from cleats.toolsets.code.search.request import read
from cleats.toolsets.code.search.shapes import OUTPUT
from tests import golden_files
from tests.requirements import requirement
from tests.search_world import CART, GUIDE, build, shop


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine.open(build(tmp_path_factory.mktemp("world") / "one", shop()))


def answered(engine: Engine, query: str, **arguments: Any) -> dict[str, Any]:
    return payload(engine, engine.search(read({"query": query, **arguments})))


def first(engine: Engine, query: str, **arguments: Any) -> dict[str, Any]:
    hit: dict[str, Any] = answered(engine, query, **arguments)["code"][0]
    return hit


@requirement("b:search:output")
@pytest.mark.parametrize(
    ("name", "query", "arguments"),
    [
        ("compact", "parse error", {"ann": False}),
        ("full", "runCommand", {"output": "full", "top": 1, "mode": "code", "ann": False}),
        ("explain", "cart AND item", {"explain": True, "top": 2, "ann": False}),
        ("records", "CVE", {"mode": "records", "output": "json", "ann": False}),
    ],
)
def test_an_answer_looks_as_it_always_did(
    engine: Engine, name: str, query: str, arguments: dict[str, Any]
) -> None:
    answer = answered(engine, query, backend="memory", **arguments)

    golden_files.check(f"search/{name}.json", json.dumps(answer, indent=2, ensure_ascii=False))


@pytest.mark.parametrize("output", ["compact", "full", "json"])
@pytest.mark.parametrize("query", ["cart", "parse error", "-nowhere", "nowhere"])
def test_every_answer_fits_the_published_schema(engine: Engine, output: str, query: str) -> None:
    closed = jsonschema.Draft202012Validator(OUTPUT)

    answer = answered(engine, query, output=output, mode="all", explain=True, context=2)

    assert list(closed.iter_errors(json.loads(json.dumps(answer)))) == []
    hit = OUTPUT["properties"]["code"]["items"]["properties"]
    assert all(set(each) <= set(hit) for each in answer["code"])


def test_a_hit_says_where_it_is(engine: Engine) -> None:
    hit = first(engine, "runCommand")

    data = CART.encode()
    assert data[hit["start"] : hit["end"]].decode().startswith("def runCommand(request):")
    assert CART.splitlines()[hit["startLine"] - 1] == "def runCommand(request):"
    assert CART.splitlines()[hit["endLine"] - 1] == "    os.system(shell)"
    assert (hit["ext"], hit["lang"], hit["kind"]) == (".py", "python", "function")


@requirement("b:search:context")
def test_context_is_lines_of_the_file_around_a_hit(engine: Engine) -> None:
    lines = CART.splitlines()

    none = first(engine, "Cart.total")
    some = first(engine, "Cart.total", context=2)
    all_of_it = first(engine, "Cart.total", context=200)

    at = some["startLine"] - 1
    assert "preContext" not in none
    assert some["preContext"] == lines[at - 2 : at]
    assert some["postContext"] == lines[some["endLine"] : some["endLine"] + 2]
    assert all_of_it["preContext"] == lines[:at]
    assert all_of_it["postContext"] == lines[some["endLine"] :]


def test_a_full_answer_has_text_facts_and_history(engine: Engine) -> None:
    hit = first(engine, "runCommand", output="full")

    assert hit["text"].splitlines()[-1] == "    os.system(shell)"
    assert hit["docmeta"]["calls"] == ["request.args.get", "os.system"]
    assert hit["docmeta"]["signature"] == "def runCommand(request)"
    assert hit["lastAuthor"] == "Ann Example"
    assert hit["lastModified"] == "2026-03-20T09:46:40Z"
    assert hit["chunkAuthors"] == ["Bob Builder"]
    assert hit["risk"]["tags"] == ["command-exec"]
    assert hit["risk"]["flows"][0]["sourceLine"] == 28
    assert hit["lint"] == [
        {"line": 30, "endLine": 30, "code": "S605", "message": "!", "tool": "ruff"}
    ]
    assert hit["imports"] == ["decimal", "werkzeug.datastructures"]


def test_bundles_are_the_same_hits_by_file_the_most_telling_file_first(engine: Engine) -> None:
    answer = answered(engine, "parse error", mode="all")
    modes = ("code", "prose", "extractedProse", "records")

    groups = answer["bundles"]["groups"]

    listed = {(mode, hit["id"]) for mode in modes for hit in answer[mode]}
    bundled = {(hit["mode"], hit["id"]) for group in groups for hit in group["hits"]}
    assert bundled == listed
    assert sum(group["hitCount"] for group in groups) == len(listed)
    totals = [group["totalScore"] for group in groups]
    assert totals == sorted(totals, reverse=True)
    for group in groups:
        scores = [hit["score"] for hit in group["hits"]]
        assert scores == sorted(scores, reverse=True)
        assert group["topScore"] == scores[0]
        assert group["totalScore"] == pytest.approx(sum(scores))
        assert group["modeCount"] == len(group["modes"])
        assert all(answer[hit["mode"]][hit["index"]]["id"] == hit["id"] for hit in group["hits"])


def test_another_branch_gives_nothing_and_says_so(engine: Engine) -> None:
    answer = answered(engine, "cart", branch="feature")

    assert answer["code"] == answer["prose"] == []
    assert answer["stats"]["branch"] == "main"
    assert answer["stats"]["branchFilter"] == "feature"
    assert answer["stats"]["branchMatch"] is False


def test_the_stats_say_what_the_filters_left(engine: Engine) -> None:
    stats = answered(engine, "cart", path="docs/", mode="all")["stats"]

    assert stats["considered"] == {"code": 0, "prose": 2, "extractedProse": 0, "records": 0}
    assert stats["chunks"] == 12
    assert stats["query"] == "cart"


def test_an_id_stays_while_the_chunk_does_and_changes_with_it(tmp_path: Path) -> None:
    one = Engine.open(build(tmp_path / "one", shop()))
    world = shop()
    world[2].text = GUIDE.replace("Put things", "Put many things")
    world[2].chunks = [c for c in world[2].chunks if c.name == "Buying"]
    world[2].chunks[0].end += 5
    two = Engine.open(build(tmp_path / "two", world))

    def ids(engine: Engine) -> dict[str, str]:
        return {
            hit["name"]: hit["id"]
            for mode in ("code", "prose")
            for hit in answered(engine, "-nowhere", top=50)[mode]
        }

    before, after = ids(one), ids(two)
    assert before["Buying"] != after["Buying"]
    assert before["Cart.add"] == after["Cart.add"]
