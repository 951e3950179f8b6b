"""Verdicts: by the standard, offline, the same as another library's, in words of our own."""

import copy
import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
import referencing
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.violations import Validator
from cleats.settings import Settings
from cleats.toolsets.assets import library, sources
from cleats.toolsets.assets.validation import Judge
from tests import golden_files
from tests.assets_world import SHOWCASE, World, failed
from tests.peer import ROOT
from tests.requirements import requirement
from tests.shell import LAW

SUITE = ROOT / "tests" / "fixtures" / "json_schema_suite"


def judge(folder: Path) -> Judge:
    found = sources.locate(Settings(schemas_dir=str(folder)))
    return Judge(library.read(found).schemas, found.schemas)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@cache
def showcase() -> Judge:
    return judge(SHOWCASE)


# The standard


@cache
def _suite() -> tuple[dict[str, Any], jsonschema_rs.Registry]:
    remotes = json.loads((SUITE / "remotes.json").read_text())
    return json.loads((SUITE / "tests.json").read_text()), jsonschema_rs.Registry(remotes.items())


@requirement("d:draft")
@pytest.mark.parametrize("name", sorted(_suite()[0]))
def test_the_official_suite_for_draft_2020_12_passes(name: str) -> None:
    groups, registry = _suite()

    for group in groups[name]:
        validator = Validator(group["schema"], registry=registry)
        for case in group["tests"]:
            found = validator.violations(case["data"])
            assert (not found) is case["valid"], (group["description"], case["description"])


def test_the_suite_is_whole() -> None:
    cases = [case for groups in _suite()[0].values() for group in groups for case in group["tests"]]

    assert len(cases) == 1257


# Another library


@cache
def _oracles() -> dict[str, jsonschema.Draft202012Validator]:
    documents = [json.loads(f.read_text()) for f in (SHOWCASE / "jsonschema").glob("*.json")]
    registry: Any = referencing.Registry().with_resources(
        [(each["$id"], referencing.Resource.from_contents(each)) for each in documents]
    )
    return {
        each["$id"].rpartition("/")[2].removesuffix(".schema.json"): (
            jsonschema.Draft202012Validator(each, registry=registry)
        )
        for each in documents
    }


@cache
def _valid() -> list[tuple[str, Any]]:
    found = sources.locate(Settings(schemas_dir=str(SHOWCASE)))
    good = []
    for example in library.read(found).examples.values():
        asset = example.parsed()
        asset.pop("$schemaRef", None)
        name = example.schema.removeprefix("nested-")
        if _oracles()[name].is_valid(asset):
            good.append((name, asset))
    return good


ODD: list[Any] = [
    None, True, False, 0, 1, -1, 0.5, 1.0, 2, 440, 20000, 20001, 1e300, 10**30, "", "x", "#0a0b0c",
    "#0A0B0C", "sine", "none", "linear", "é" * 80, "x" * 81, [], {}, [0, 1], [1, 1], ["#000000"],
    {"period": 1}, {"name": "x"}, [None],
]  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, each in value.items():
            found += _places(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            found += _places(each, (*path, index))
    return found


def _mutated(asset: Any, chance: random.Random) -> Any:
    asset = copy.deepcopy(asset)
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        path = chance.choice(_places(asset))
        if not path:
            continue
        parent = asset
        for step in path[:-1]:
            parent = parent[step]
        kind = chance.choice(("replace", "remove", "add", "repeat"))
        if kind == "remove":
            del parent[path[-1]]
        elif kind == "replace":
            parent[path[-1]] = copy.deepcopy(chance.choice(ODD))
        elif isinstance(parent, dict):
            extra = chance.choice(["extra", "name", "tone", "controls", "curve", "partials"])
            parent[extra] = copy.deepcopy(chance.choice(ODD))
        else:
            parent.insert(0, copy.deepcopy(parent[path[-1]]))
    return asset


@requirement("d:draft")
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_mutated_assets_get_the_verdict_of_another_library(seed: int) -> None:
    chance = random.Random(seed)
    ours = showcase()
    invalid = 0

    for _ in range(1000):
        name, asset = chance.choice(_valid())
        mutated = _mutated(asset, chance)
        verdict = ours.verdict(mutated, name)["ok"]
        assert verdict is _oracles()[name].is_valid(mutated), (name, mutated)
        invalid += not verdict

    assert 300 < invalid < 900  # a fuzz that only ever sees one side proves nothing


@requirement("d:errors:pointers")
@LAW
@given(st.randoms(use_true_random=False))
def test_every_path_points_at_something_or_at_what_should_not_be_there(
    chance: random.Random,
) -> None:
    name, asset = chance.choice(_valid())
    mutated = _mutated(asset, chance)

    errors = showcase().verdict(mutated, name)["errors"]

    pairs = [(each["path"], each["msg"]) for each in errors]
    assert pairs == sorted(set(pairs))
    places = {"".join("/" + str(step) for step in path) for path in _places(mutated)}
    assert {path for path, _ in pairs} <= places


@requirement("d:errors:order")
def test_errors_at_one_place_are_sorted_by_their_words_and_said_once(world: World) -> None:
    one = {"enum": ["abc"], "minLength": 3}
    world.schema("a.schema.json", {**one, "allOf": [one, {"type": "integer"}]})

    assert judge(world.schemas).verdict("x", "a") == failed(
        ("", "expected at least 3 characters"),
        ("", "expected integer"),
        ("", 'expected one of "abc"'),
    )


# References


@requirement("d:base-uri")
def test_without_ids_schemas_refer_to_each_other_by_file(world: World) -> None:
    world.schema("a.schema.json", {"$ref": "b.schema.json"})
    world.schema("b.schema.json", {"$ref": "sub/c.json#/$defs/c"})
    world.schema("sub/c.json", {"$defs": {"c": {"$ref": "../d.schema.json"}}})
    world.schema("d.schema.json", {"type": "integer"})

    ours = judge(world.schemas)

    assert ours.verdict(1, "a") == {"ok": True, "errors": []}
    assert ours.verdict("x", "a") == failed(("", "expected integer"))
    assert ours.broken == {}


@pytest.mark.parametrize(
    ("reference", "other"),
    [
        ("b.schema.json", {"$id": "https://one.test/v1/b.schema.json"}),
        ("https://one.test/v1/b.schema.json", {"$id": "https://one.test/v1/b.schema.json"}),
        ("/v2/other", {"$id": "https://one.test/v2/other"}),
        ("b.schema.json", {"$id": "https://two.test/elsewhere"}),
        ("b.schema.json", {}),
        ("b.schema.json#/$defs/x", {}),
        ("b.schema.json#here", {"$anchor": "here"}),
        (
            "https://two.test/inner",
            {"$defs": {"y": {"$id": "https://two.test/inner", "$ref": "x"}}},
        ),
        ("urn:a:b", {"$id": "urn:a:b"}),
    ],
)
def test_a_schema_is_found_by_its_id_and_by_its_file(
    world: World, reference: str, other: dict[str, Any]
) -> None:
    world.schema(
        "a.schema.json", {"$id": "https://one.test/v1/a.json", "items": {"$ref": reference}}
    )
    world.schema("x.schema.json", {"$id": "https://two.test/x", "type": "integer"})
    definitions = {"x": {"type": "integer"}, **other.pop("$defs", {})}
    world.schema("b.schema.json", {"type": "integer", "$defs": definitions, **other})

    ours = judge(world.schemas)

    assert ours.broken == {}
    assert ours.verdict([1, "x"], "a") == failed(("/1", "expected integer"))


def test_relative_references_behind_a_file_with_an_id_are_resolved_by_that_id(
    world: World,
) -> None:
    world.schema("a.schema.json", {"$ref": "b.schema.json"})
    world.schema("b.schema.json", {"$id": "https://x.test/deep/b", "items": {"$ref": "c"}})
    world.schema("c.schema.json", {"$id": "https://x.test/deep/c", "type": "integer"})

    assert judge(world.schemas).verdict(["x"], "a") == failed(("/0", "expected integer"))


def test_recursive_schemas_are_no_trouble(world: World) -> None:
    world.schema(
        "a.schema.json", {"properties": {"b": {"$ref": "b.schema.json"}}, "type": "object"}
    )
    world.schema("b.schema.json", {"items": {"$ref": "a.schema.json"}})

    assert judge(world.schemas).verdict({"b": [{"b": [1]}]}, "a") == failed(
        ("/b/0/b/0", "expected object")
    )


def test_what_looks_like_a_reference_inside_data_is_none(world: World) -> None:
    odd = {"const": {"$ref": "nope.json"}, "default": {"$id": "::"}, "properties": {"$ref": {}}}
    world.schema("a.schema.json", odd)

    ours = judge(world.schemas)

    assert ours.broken == {}
    assert ours.verdict({"$ref": "nope.json"}, "a")["ok"] is True


@pytest.mark.parametrize(
    "document",
    [
        {"type": "nope"},
        {"$ref": "nowhere.json"},
        {"$ref": "https://nowhere.test/x.json"},
        {"$ref": "http://[bad"},
        {"$dynamicRef": "http://[bad"},
        {"$ref": "#/$defs/nope"},
        {"$ref": "good.schema.json#/$defs/nope"},
        {"pattern": "("},
        {"$defs": {"x": {"$id": "http://[bad"}}},
        json.loads('{"items":' * 700 + "{}" + "}" * 700),
        {"$id": 5},
    ],
    ids=lambda document: str(document)[:40],
)
def test_a_schema_that_cannot_be_used_spoils_only_itself_and_what_needs_it(
    world: World, document: dict[str, Any]
) -> None:
    world.schema("bad.schema.json", document)
    world.schema("needs.schema.json", {"$ref": "bad.schema.json"})
    world.schema("good.schema.json", {"type": "integer"})

    ours = judge(world.schemas)

    assert ours.verdict(1, "good")["ok"] is True
    assert ours.verdict(1, "bad") == failed(("/schema", "schema_invalid"))
    assert ours.verdict(1, "needs") == failed(("/schema", "schema_invalid"))
    assert set(ours.broken) == {"bad", "needs"}


@requirement("d:draft")
@pytest.mark.parametrize(
    "document",
    [
        {"$schema": "https://nobody.test/meta", "type": "integer"},
        {"$schema": "no uri %%", "type": "integer"},
        {"$schema": "", "type": "integer"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema#", "type": "integer"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "integer"},
        {"$defs": {"x": {"$id": "x", "$schema": "urn:nobody", "type": "integer"}}, "$ref": "x"},
    ],
    ids=str,
)
def test_a_schema_of_an_unknown_dialect_is_read_as_draft_2020_12(
    world: World, document: dict[str, Any]
) -> None:
    world.schema("odd.schema.json", document)
    world.schema("needs.schema.json", {"$ref": "odd.schema.json"})
    world.schema("good.schema.json", {"type": "integer"})

    ours = judge(world.schemas)

    assert ours.broken == {}
    for name in ("odd", "needs", "good"):
        assert ours.verdict(1, name)["ok"] is True
        assert ours.verdict("x", name) == failed(("", "expected integer"))


@requirement("d:draft")
def test_a_schema_that_will_not_do_is_told_with_its_place_and_the_draft_it_was_written_for(
    world: World,
) -> None:
    pairs = {"properties": {"pair": {"items": [{"type": "string"}]}}}
    world.schema("new.schema.json", pairs)
    world.schema("old.schema.json", pairs | {"$schema": "http://json-schema.org/draft-07/schema#"})
    world.schema("lost.schema.json", {"$ref": "#/$defs/gone"})

    ours = judge(world.schemas)

    where = "/properties/pair/items: expected boolean or object"
    says = "it is read as draft 2020-12, and says http://json-schema.org/draft-07/schema#"
    assert ours.broken == {
        "new": where,
        "old": f"{where} ({says})",
        "lost": "Pointer '/$defs/gone' does not exist",
    }


def test_a_reference_never_goes_to_the_network(world: World) -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, *_args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        world.schema("a.schema.json", {"$ref": f"http://127.0.0.1:{server.server_port}/x.json"})
        ours = judge(world.schemas)
    finally:
        server.shutdown()
        server.server_close()

    assert ours.verdict(1, "a") == failed(("/schema", "schema_invalid"))
    assert asked == []


def test_of_two_schemas_with_one_id_the_first_is_referred_to(world: World) -> None:
    world.schema("a.schema.json", {"$id": "https://x.test/same", "type": "integer"})
    world.schema("b.schema.json", {"$id": "https://x.test/same", "type": "string"})
    world.schema("c.schema.json", {"$ref": "https://x.test/same"})

    ours = judge(world.schemas)

    assert [ours.verdict(1, name)["ok"] for name in "abc"] == [True, False, True]


# Markers


@requirement("d:alias:schema-ref")
@pytest.mark.parametrize("marker", ["$schemaRef", "$schema"])
def test_a_marker_is_ignored_unless_the_schema_knows_it(world: World, marker: str) -> None:
    world.schema("closed.schema.json", {"properties": {}, "additionalProperties": False})
    world.schema("knows.schema.json", {"properties": {marker: {"const": "x"}}})

    ours = judge(world.schemas)

    assert ours.verdict({marker: 5}, "closed")["ok"] is True
    assert ours.verdict({"a": {marker: 5}}, "closed")["ok"] is False
    assert ours.verdict({marker: 5}, "knows") == failed((f"/{marker}", 'expected "x"'))


def test_validating_changes_neither_asset_nor_schema(world: World) -> None:
    path = world.schema("a.schema.json", {"properties": {"a": {"default": 1}}, "$comment": "x"})
    asset = {"$schemaRef": "a.schema.json"}
    found = sources.locate(Settings(schemas_dir=str(world.schemas)))
    files = library.read(found)

    Judge(files.schemas, found.schemas).verdict(asset, "a")

    assert asset == {"$schemaRef": "a.schema.json"}
    assert files.schemas["a"].document == json.loads(path.read_text())


# Threads


def test_one_judge_serves_many_threads() -> None:
    ours = showcase()
    chance = random.Random(1)
    cases = [(n, _mutated(a, chance)) for n, a in (chance.choice(_valid()) for _ in range(200))]
    expected = [ours.verdict(asset, name) for name, asset in cases]

    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            found = list(pool.map(lambda case: ours.verdict(case[1], case[0]), cases))
            assert found == expected


# Wording


WORDING: list[tuple[Any, Any]] = [
    ({"type": "string"}, 5),
    ({"type": ["string", "null", "array"]}, 5),
    ({"required": ["a", 'b"c']}, {}),
    ({"enum": [1, "a", None, {"b": 1, "a": 2}]}, 2),
    ({"const": {"b": [1], "a": "é"}}, 2),
    ({"minimum": 1}, 0),
    ({"maximum": 1.5}, 2),
    ({"exclusiveMinimum": 0}, 0),
    ({"exclusiveMaximum": 0}, 0),
    ({"multipleOf": 0.5}, 0.3),
    ({"minLength": 1}, ""),
    ({"maxLength": 2}, "abc"),
    ({"pattern": "^a+$"}, "b"),
    ({"minItems": 1}, []),
    ({"maxItems": 2}, [1, 2, 3]),
    ({"uniqueItems": True}, [1, 1]),
    ({"contains": {"type": "string"}}, [1]),
    ({"contains": {"type": "integer"}, "maxContains": 1}, [1, 2]),
    ({"prefixItems": [{}], "items": False}, [1, 2, 3]),
    ({"prefixItems": [{}], "unevaluatedItems": False}, [1, 2, 3]),
    ({"minProperties": 1}, {}),
    ({"maxProperties": 1}, {"a": 1, "b": 2}),
    ({"additionalProperties": False}, {"a": 1, "b/c": 2}),
    ({"items": {"additionalProperties": False}}, [{}, {"a": {}}]),
    ({"anyOf": [{"additionalProperties": False}, {"type": "string"}]}, {"a": 1}),
    ({"unevaluatedProperties": False}, {"b": 1, "a": 2}),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1, "cd": 2, "e": 3}),
    ({"propertyNames": {"pattern": "^a"}}, {"b": 1}),
    ({"dependentRequired": {"a": ["b", "c"]}}, {"a": 1}),
    ({"dependentSchemas": {"a": {"minProperties": 2}}}, {"a": 1}),
    ({"properties": {"a": False}}, {"a": 1}),
    ({"not": {"type": "integer"}}, 5),
    ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, 1),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}),
    ({"anyOf": [{"properties": {"a": {"type": "string"}}}, {"type": "string"}]}, {"a": 1}),
    ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, 7),
    ({"oneOf": [{"const": "a"}, {"const": "b"}]}, "c"),
    ({"oneOf": [{"const": n} for n in range(9)]}, "x" * 200),
    ({"allOf": [{"type": "string"}, {"minimum": 5}]}, 1),
    ({"if": {"type": "integer"}, "then": {"minimum": 5}}, 1),
    ({"items": {"type": "string"}}, ["a", 1, None]),
    ({"properties": {"a~b/c": {"type": "string"}}}, {"a~b/c": 1}),
    ({"format": "date"}, "no date"),
]


def test_the_words_of_every_keyword_are_the_golden_ones(world: World) -> None:
    """A library that changes its own words, or its order, does not change ours."""
    lines = []
    for number, (schema, _asset) in enumerate(WORDING):
        world.schema(f"s{number}.schema.json", schema)
    ours = judge(world.schemas)
    for number, (schema, asset) in enumerate(WORDING):
        answer = ours.verdict(asset, f"s{number}")
        lines.append(json.dumps([schema, asset, answer["errors"]], ensure_ascii=False))

    golden_files.check("assets_wording.ndjson", "\n".join(lines) + "\n")


def test_no_keyword_is_worded_by_accident() -> None:
    """Every violation that the whole official suite can provoke has words of its own."""
    groups, registry = _suite()

    for name in groups:
        for group in groups[name]:
            validator = Validator(group["schema"], registry=registry)
            for case in group["tests"]:
                for violation in validator.violations(case["data"]):
                    assert "does not satisfy" not in violation.message, violation
