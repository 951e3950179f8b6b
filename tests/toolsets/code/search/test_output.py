"""The format of an answer: the fields of a hit, compact and full, and hits grouped by file."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.answer_schema import SEARCH_OUTPUT_SCHEMA
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from tests.support import golden_files
from tests.support.requirements import requirement
from tests.support.search import CART_SOURCE, GUIDE_TEXT, ShopFile, build_generation, build_shop_files


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> SearchEngine:
    return SearchEngine.open(build_generation(tmp_path_factory.mktemp("world") / "one", build_shop_files()))


def get_answer(engine: SearchEngine, query: str, **arguments: Any) -> dict[str, Any]:
    return render_answer(engine, search_generation(engine, parse_request({"query": query, **arguments})))


def find_first_hit(engine: SearchEngine, query: str, **arguments: Any) -> dict[str, Any]:
    hit: dict[str, Any] = get_answer(engine, query, **arguments)["code"][0]
    return hit


ANSWER_MODES = ("code", "prose", "extractedProse", "records")
COMPACT_FIELDS = {"file", "startLine", "endLine", "kind", "name", "headline", "score"}


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
    engine: SearchEngine, name: str, query: str, arguments: dict[str, Any]
) -> None:
    answer = get_answer(engine, query, backend="memory", **arguments)

    golden_files.compare_golden_file(f"search/{name}.json", json.dumps(answer, indent=2, ensure_ascii=False))


@pytest.mark.parametrize("output", ["compact", "full", "json"])
@pytest.mark.parametrize("query", ["cart", "parse error", "-nowhere", "nowhere"])
@pytest.mark.parametrize("explain", [True, False])
def test_every_answer_fits_the_published_schema(engine: SearchEngine, output: str, query: str, explain: bool) -> None:
    closed = jsonschema.Draft202012Validator(SEARCH_OUTPUT_SCHEMA)

    answer = get_answer(engine, query, output=output, mode="all", explain=explain, context=2)

    assert list(closed.iter_errors(json.loads(json.dumps(answer)))) == []
    hit = SEARCH_OUTPUT_SCHEMA["properties"]["code"]["items"]["properties"]
    assert all(set(compact_hit) <= set(hit) for compact_hit in answer["code"])


def test_a_full_hit_says_where_it_is(engine: SearchEngine) -> None:
    hit = find_first_hit(engine, "runCommand", output="full")

    data = CART_SOURCE.encode()
    assert data[hit["start"] : hit["end"]].decode().startswith("def runCommand(request):")
    assert CART_SOURCE.splitlines()[hit["startLine"] - 1] == "def runCommand(request):"
    assert CART_SOURCE.splitlines()[hit["endLine"] - 1] == "    os.system(shell)"
    assert (hit["ext"], hit["lang"], hit["kind"]) == (".py", "python", "function")


def test_a_compact_hit_says_what_and_where_it_is_and_no_more(engine: SearchEngine) -> None:
    answer = get_answer(engine, "cart", mode="all")

    hits = [hit for mode in ANSWER_MODES for hit in answer[mode]]
    assert {key for hit in hits for key in hit} <= COMPACT_FIELDS | {"lang", "signature"}
    assert all(set(hit) >= COMPACT_FIELDS for hit in hits)
    assert all(hit["score"] == round(hit["score"], 4) for hit in hits)
    assert all(set(group) == {"file", "hitCount", "topScore"} for group in answer["bundles"]["groups"])


def test_a_compact_hit_has_its_signature_where_the_headline_is_something_else(
    tmp_path: Path,
) -> None:
    file = ShopFile("a.py", "def short(): pass\ndef told(one, two): pass\ndef long(): pass\n")
    file.add_chunk("function", "short", "def short(): pass", signature="def short()")
    signature, endless = "def told(one,\ntwo)", "def long(" + "a, " * 99
    file.add_chunk("function", "told", "def told(one, two): pass", signature=signature, doc="Tells.")
    file.add_chunk("function", "long", "def long(): pass", signature=endless, doc="Long.")
    engine = SearchEngine.open(build_generation(tmp_path / "one", [file]))

    hits = {hit["name"]: hit for hit in get_answer(engine, "-nowhere")["code"]}

    assert "signature" not in hits["short"]
    assert hits["told"]["signature"] == "def told(one, two)"
    assert len(hits["long"]["signature"]) <= 160
    assert hits["long"]["signature"].endswith("…")


def test_a_comment_of_code_that_was_found_is_folded_into_it_in_a_compact_answer(
    engine: SearchEngine,
) -> None:
    compact = get_answer(engine, "parse error", ann=False)
    full = get_answer(engine, "parse error", ann=False, output="full")
    comments_only = get_answer(engine, "parse error", ann=False, mode="extracted-prose")

    assert "HTTPStore.load" in [hit["name"] for hit in compact["code"]]
    assert "HTTPStore.load" not in [hit["name"] for hit in compact["extractedProse"]]
    assert "HTTPStore.load" in [hit["name"] for hit in full["extractedProse"]]
    assert "HTTPStore.load" in [hit["name"] for hit in comments_only["extractedProse"]]


def make_files(path: str, count: int) -> list[ShopFile]:
    """Return files with a function, a section and a comment each."""
    files = []
    for number in range(count):
        code = ShopFile(f"{path}/module_{number:02}.py", f"def parse_the_value_{number:02}(): pass\n# why\n")
        code.add_chunk("function", f"parse_the_value_{number:02}", code.text.splitlines()[0])
        code.add_chunk("comment", f"other_{number:02}", "# why", mode="extracted-prose")
        page = ShopFile(f"docs/page_{number:02}.md", "# Values\n", lang="markdown", mode="prose")
        page.add_chunk("section", f"Values {number:02}", "# Values", mode="prose")
        files += [code, page]
    return files


def test_ten_hits_of_code_come_with_three_documents_and_comments_unless_more_are_asked_for(
    tmp_path: Path,
) -> None:
    engine = SearchEngine.open(build_generation(tmp_path / "one", make_files("source/package", 12)))

    def count_hits(**arguments: Any) -> list[int]:
        answer = get_answer(engine, "-nowhere", **arguments)
        return [len(answer[mode]) for mode in ANSWER_MODES[:3]]

    assert count_hits() == [10, 3, 3]
    assert count_hits(mode="both", output="full") == [10, 3, 3]
    assert count_hits(mode="prose") == [0, 10, 10]
    assert count_hits(mode="all") == [10, 10, 10]
    assert count_hits(top=11) == [11, 11, 11]


def test_a_compact_answer_with_ten_hits_of_code_is_short(tmp_path: Path) -> None:
    engine = SearchEngine.open(build_generation(tmp_path / "one", make_files("source/package", 12)))

    answer = get_answer(engine, "-nowhere")

    text = json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
    assert len(answer["code"]) == 10
    assert len(text.encode()) <= 4096


@requirement("b:search:context")
def test_context_gives_a_compact_hit_its_text_with_the_lines_around(engine: SearchEngine) -> None:
    lines = CART_SOURCE.splitlines()

    none = find_first_hit(engine, "Cart.total")
    some = find_first_hit(engine, "Cart.total", context=2)
    all_of_it = find_first_hit(engine, "Cart.total", context=200)

    assert "text" not in none
    assert some["text"].split("\n") == lines[some["startLine"] - 3 : some["endLine"] + 2]
    assert all_of_it["text"].split("\n") == lines
    assert not {"truncated", "preContext", "postContext"} & some.keys()


def test_the_text_of_a_long_hit_ends_early_and_says_so(tmp_path: Path) -> None:
    body = "".join(f"    line{number}\n" for number in range(299))
    file = ShopFile("a.py", f"import os\ndef long():\n{body}x = 1\n")
    file.add_chunk("function", "long", f"def long():\n{body}")
    engine = SearchEngine.open(build_generation(tmp_path / "one", [file]))

    compact = find_first_hit(engine, "long", context=1)
    full = find_first_hit(engine, "long", output="full")

    assert compact["text"].split("\n")[:2] == ["import os", "def long():"]
    assert len(compact["text"].split("\n")) == 1 + 40
    assert len(full["text"].split("\n")) == 200
    assert compact["truncated"] is full["truncated"] is True


def test_the_text_of_a_hit_with_long_lines_ends_early_and_says_so(tmp_path: Path) -> None:
    body = "def long(): return '" + "x" * 30_000 + "'"
    engine = SearchEngine.open(
        build_generation(tmp_path / "one", [ShopFile("a.py", body).add_chunk("function", "long", body)])
    )

    hit = find_first_hit(engine, "long", output="full")

    assert body.startswith(hit["text"])
    assert len(hit["text"]) == 20_000
    assert hit["truncated"] is True


def test_a_full_hit_has_the_lines_around_it_apart_from_its_text(engine: SearchEngine) -> None:
    lines = CART_SOURCE.splitlines()

    none = find_first_hit(engine, "Cart.total", output="full", context=0)
    some = find_first_hit(engine, "Cart.total", output="full", context=2)
    all_of_it = find_first_hit(engine, "Cart.total", output="full", context=200)

    at = some["startLine"] - 1
    assert none["preContext"] == none["postContext"] == []
    assert none["text"] == some["text"]
    assert some["preContext"] == lines[at - 2 : at]
    assert some["text"].split("\n") == lines[at : some["endLine"]]
    assert some["postContext"] == lines[some["endLine"] : some["endLine"] + 2]
    assert all_of_it["preContext"] == lines[:at]
    assert all_of_it["postContext"] == lines[some["endLine"] :]


def test_a_full_answer_has_text_facts_and_history(engine: SearchEngine) -> None:
    hit = find_first_hit(engine, "runCommand", output="full")

    assert hit["text"].splitlines()[-1] == "    os.system(shell)"
    assert hit["docmeta"]["calls"] == ["request.args.get", "os.system"]
    assert hit["docmeta"]["signature"] == "def runCommand(request)"
    assert hit["lastAuthor"] == "Ann Example"
    assert hit["lastModified"] == "2026-03-20T09:46:40Z"
    assert hit["chunkAuthors"] == ["Bob Builder"]
    assert hit["risk"]["tags"] == ["command-exec"]
    assert hit["risk"]["flows"][0]["sourceLine"] == 28
    assert hit["lint"] == [{"line": 30, "endLine": 30, "code": "S605", "message": "!", "tool": "ruff"}]
    assert hit["imports"] == ["decimal", "werkzeug.datastructures"]


def test_bundles_are_the_same_hits_by_file_the_most_telling_file_first(engine: SearchEngine) -> None:
    answer = get_answer(engine, "parse error", mode="all", output="full")

    groups = answer["bundles"]["groups"]

    hit_keys = {(mode, hit["id"]) for mode in ANSWER_MODES for hit in answer[mode]}
    bundled = {(hit["mode"], hit["id"]) for group in groups for hit in group["hits"]}
    assert bundled == hit_keys
    assert sum(group["hitCount"] for group in groups) == len(hit_keys)
    totals = [group["totalScore"] for group in groups]
    assert totals == sorted(totals, reverse=True)
    for group in groups:
        scores = [hit["score"] for hit in group["hits"]]
        assert scores == sorted(scores, reverse=True)
        assert group["topScore"] == scores[0]
        assert group["totalScore"] == pytest.approx(sum(scores))
        assert group["modeCount"] == len(group["modes"])
        assert all(answer[hit["mode"]][hit["index"]]["id"] == hit["id"] for hit in group["hits"])


def test_another_branch_gives_nothing_and_says_so(engine: SearchEngine) -> None:
    answer = get_answer(engine, "cart", branch="feature")

    assert answer["code"] == answer["prose"] == []
    assert answer["stats"]["branch"] == "main"
    assert answer["stats"]["branchFilter"] == "feature"
    assert answer["stats"]["branchMatch"] is False


def test_the_stats_say_what_the_filters_left(engine: SearchEngine) -> None:
    stats = get_answer(engine, "cart", path="docs/", mode="all")["stats"]

    assert stats["considered"] == {"code": 0, "prose": 2, "extractedProse": 0, "records": 0}
    assert stats["chunks"] == 12
    assert stats["query"] == "cart"


def test_an_id_stays_while_the_chunk_does_and_changes_with_it(tmp_path: Path) -> None:
    one = SearchEngine.open(build_generation(tmp_path / "one", build_shop_files()))
    world = build_shop_files()
    world[2].text = GUIDE_TEXT.replace("Put things", "Put many things")
    world[2].chunks = [c for c in world[2].chunks if c.name == "Buying"]
    world[2].chunks[0].end += 5
    two = SearchEngine.open(build_generation(tmp_path / "two", world))

    def map_ids(engine: SearchEngine) -> dict[str, str]:
        return {
            hit["name"]: hit["id"]
            for mode in ("code", "prose")
            for hit in get_answer(engine, "-nowhere", top=50, output="full")[mode]
        }

    before, after = map_ids(one), map_ids(two)
    assert before["Buying"] != after["Buying"]
    assert before["Cart.add"] == after["Cart.add"]
