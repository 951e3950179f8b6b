"""Verdicts follow the standard, work offline, match another library's and use our own words."""

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

from cleats.contract.pointer import join_pointer
from cleats.contract.violations import Validator
from cleats.settings import make_settings
from cleats.toolsets.assets import library, sources
from cleats.toolsets.assets.validation import AssetValidator
from tests.contract.test_violations import NASTY_KEYS
from tests.support import golden_files
from tests.support.assets import SHOWCASE_FOLDER, AssetFolders, build_failure
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement
from tests.support.shell import LAW_SETTINGS

SUITE_FOLDER = REPOSITORY_ROOT / "tests" / "fixtures" / "json_schema_suite"


def make_validator(folder: Path) -> AssetValidator:
    roots = sources.locate_sources(make_settings(schemas_dir=str(folder)))
    return AssetValidator(library.read_library(roots).schemas, roots.schemas)


@pytest.fixture
def world(tmp_path: Path) -> AssetFolders:
    return AssetFolders(tmp_path)


@cache
def load_showcase() -> AssetValidator:
    return make_validator(SHOWCASE_FOLDER)


# The standard


DRAFTS = {
    "draft4": ("http://json-schema.org/draft-04/schema#", jsonschema_rs.Draft4, 610),
    "draft6": ("http://json-schema.org/draft-06/schema#", jsonschema_rs.Draft6, 829),
    "draft7": ("http://json-schema.org/draft-07/schema#", jsonschema_rs.Draft7, 913),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", jsonschema_rs.Draft201909, 1227),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", jsonschema_rs.Draft202012, 1257),
}
"""The URI of each draft, its name in the library, which the documents without `$schema` need, and its cases."""


@cache
def _read_suite(draft: str) -> tuple[dict[str, Any], jsonschema_rs.Registry]:
    remotes = json.loads((SUITE_FOLDER / "remotes.json").read_text())
    # Some of the remote documents make sense in other drafts only, and lead nowhere in this one.
    registry = jsonschema_rs.Registry(remotes.items(), draft=DRAFTS[draft][1], retriever=lambda _uri: True)
    return json.loads((SUITE_FOLDER / f"{draft}.json").read_text()), registry


@requirement("d:draft")
@pytest.mark.parametrize(
    ("draft", "name"), [(draft, name) for draft in DRAFTS for name in sorted(_read_suite(draft)[0])]
)
def test_the_official_suite_of_the_draft_that_a_schema_declares_passes(draft: str, name: str) -> None:
    groups, registry = _read_suite(draft)

    for group in groups[name]:
        schema = group["schema"]
        declared = schema if isinstance(schema, bool) else {"$schema": DRAFTS[draft][0], **schema}
        validator = Validator(declared, registry=registry)
        for case in group["tests"]:
            violations = validator.find_violations(case["data"])
            assert (not violations) is case["valid"], (group["description"], case["description"])


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_suite_is_whole(draft: str) -> None:
    cases = [case for groups in _read_suite(draft)[0].values() for group in groups for case in group["tests"]]

    assert len(cases) == DRAFTS[draft][2]


@requirement("d:draft")
@pytest.mark.parametrize(
    ("draft", "schema", "valid", "invalid"),
    [
        ("draft4", {"minimum": 1, "exclusiveMinimum": True}, 2, 1),
        ("draft4", {"properties": {"a": {"const": 1}}}, {"a": 2}, None),
        ("draft6", {"exclusiveMinimum": 1}, 2, 1),
        ("draft7", {"items": [{"type": "string"}], "additionalItems": False}, ["x"], ["x", 1]),
        ("draft7", {"dependencies": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
        ("draft7", {"$ref": "#/definitions/a", "type": "string", "definitions": {"a": {}}}, 5, None),
        ("draft2019-09", {"$recursiveAnchor": True, "items": {"$recursiveRef": "#"}, "type": "array"}, [[]], [1]),
        ("draft2019-09", {"$ref": "#/$defs/a", "type": "string", "$defs": {"a": {}}}, "x", 5),
        ("draft2020-12", {"prefixItems": [{"type": "string"}]}, ["x"], [1]),
    ],
)
def test_an_assets_schema_means_what_its_draft_says(
    world: AssetFolders, draft: str, schema: dict[str, Any], valid: Any, invalid: Any
) -> None:
    world.write_schema("a.schema.json", {"$schema": DRAFTS[draft][0], **schema})

    validator = make_validator(world.schemas)

    assert validator.broken_schemas == {}
    assert validator.validate(valid, "a")["ok"] is True
    assert invalid is None or validator.validate(invalid, "a")["ok"] is False


@requirement("d:draft", "d:base-uri")
@pytest.mark.parametrize("keyword", ["id", "$id"])
@pytest.mark.parametrize("draft", ["draft4", "draft6", "draft7", "draft2020-12"])
def test_a_schema_is_found_by_the_keyword_that_names_it_in_its_draft(
    world: AssetFolders, draft: str, keyword: str
) -> None:
    dialect = {"$schema": DRAFTS[draft][0]}
    world.write_schema("a.schema.json", {**dialect, "items": {"$ref": "https://x.test/deep/b.json"}})
    world.write_schema("other.schema.json", {**dialect, keyword: "https://x.test/deep/b.json", "type": "integer"})

    validator = make_validator(world.schemas)

    if (keyword == "id") == (draft == "draft4"):
        assert validator.broken_schemas == {}
        assert validator.validate([1, "x"], "a") == build_failure(("/1", "expected integer"))
    else:
        assert validator.broken_schemas == {"a": "'https://x.test/deep/b.json' does not exist"}


@requirement("d:draft")
def test_schemas_of_different_drafts_refer_to_each_other(world: AssetFolders) -> None:
    old = {
        "$schema": DRAFTS["draft7"][0],
        "items": [{"type": "integer"}],
        "properties": {"b": {"$ref": "new.schema.json"}},
    }
    world.write_schema("old.schema.json", old)
    world.write_schema(
        "new.schema.json", {"prefixItems": [{"$ref": "old.schema.json"}], "not": {"type": "object", "required": ["b"]}}
    )

    validator = make_validator(world.schemas)

    assert validator.broken_schemas == {}
    assert validator.validate([["x"]], "new") == build_failure(("/0/0", "expected integer"))
    assert validator.validate({"b": {"b": 1}}, "old")["ok"] is False


@requirement("d:draft")
def test_an_id_beside_a_reference_counts_only_where_the_draft_says_so(world: AssetFolders) -> None:
    item = {"$id": "https://x.test/deep/item", "$ref": "leaf.json"}
    for draft in ("draft7", "draft2019-09"):
        world.write_schema(f"{draft}.schema.json", {"$schema": DRAFTS[draft][0], "items": item})
    world.write_schema("leaf.json", {"type": "null"})
    world.write_schema("deep.json", {"$id": "https://x.test/deep/leaf.json", "type": "integer"})

    validator = make_validator(world.schemas)

    assert validator.broken_schemas == {}
    assert validator.validate(["x"], "draft7") == build_failure(("/0", "expected null"))
    assert validator.validate(["x"], "draft2019-09") == build_failure(("/0", "expected integer"))


# Another library


@cache
def _load_oracles() -> dict[str, jsonschema.Draft202012Validator]:
    documents = [json.loads(f.read_text()) for f in (SHOWCASE_FOLDER / "jsonschema").glob("*.json")]
    registry: Any = referencing.Registry().with_resources(
        [(document["$id"], referencing.Resource.from_contents(document)) for document in documents]
    )
    return {
        document["$id"].rpartition("/")[2].removesuffix(".schema.json"): (
            jsonschema.Draft202012Validator(document, registry=registry)
        )
        for document in documents
    }


@cache
def _collect_valid_assets() -> list[tuple[str, Any]]:
    roots = sources.locate_sources(make_settings(schemas_dir=str(SHOWCASE_FOLDER)))
    good = []
    for example in library.read_library(roots).examples.values():
        asset = example.parse()
        asset.pop("$schemaRef", None)
        name = example.schema.removeprefix("nested-")
        if _load_oracles()[name].is_valid(asset):
            good.append((name, asset))
    return good


ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 0.5, 1.0, 2, 440, 20000, 20001, 1e300, 10**30, "", "x", "#0a0b0c",
    "#0A0B0C", "sine", "none", "linear", "é" * 80, "x" * 81, [], {}, [0, 1], [1, 1], ["#000000"],
    {"period": 1}, {"name": "x"}, [None],
]  # fmt: skip


def _list_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    paths = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            paths += _list_paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            paths += _list_paths(item, (*path, index))
    return paths


def _mutate_asset(asset: Any, rng: random.Random) -> Any:
    asset = copy.deepcopy(asset)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        path = rng.choice(_list_paths(asset))
        if not path:
            continue
        parent = asset
        for step in path[:-1]:
            parent = parent[step]
        kind = rng.choice(("replace", "remove", "add", "repeat"))
        if kind == "remove":
            del parent[path[-1]]
        elif kind == "replace":
            parent[path[-1]] = copy.deepcopy(rng.choice(ODD_VALUES))
        elif isinstance(parent, dict):
            extra = rng.choice(["extra", "name", "tone", "controls", "curve", "partials", *NASTY_KEYS])
            parent[extra] = copy.deepcopy(rng.choice(ODD_VALUES))
        else:
            parent.insert(0, copy.deepcopy(parent[path[-1]]))
    return asset


@requirement("d:draft")
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_mutated_assets_get_the_verdict_of_another_library(seed: int) -> None:
    rng = random.Random(seed)
    validator = load_showcase()
    invalid = 0

    for _ in range(1000):
        name, asset = rng.choice(_collect_valid_assets())
        mutated = _mutate_asset(asset, rng)
        verdict = validator.validate(mutated, name)["ok"]
        assert verdict is _load_oracles()[name].is_valid(mutated), (name, mutated)
        invalid += not verdict

    assert 300 < invalid < 900  # a fuzz that only ever sees one side proves nothing


@requirement("d:errors:pointers")
@LAW_SETTINGS
@given(st.randoms(use_true_random=False))
def test_every_path_points_at_something_or_at_what_should_not_be_there(
    rng: random.Random,
) -> None:
    name, asset = rng.choice(_collect_valid_assets())
    mutated = _mutate_asset(asset, rng)

    errors = load_showcase().validate(mutated, name)["errors"]

    pairs = [(error["path"], error["msg"]) for error in errors]
    assert pairs == sorted(set(pairs))
    pointers = {join_pointer(path) for path in _list_paths(mutated)}
    assert {path for path, _ in pairs} <= pointers


@requirement("d:errors:order")
def test_errors_at_one_place_are_sorted_by_their_words_and_said_once(world: AssetFolders) -> None:
    one = {"enum": ["abc"], "minLength": 3}
    world.write_schema("a.schema.json", {**one, "allOf": [one, {"type": "integer"}]})

    assert make_validator(world.schemas).validate("x", "a") == build_failure(
        ("", "expected at least 3 characters"),
        ("", "expected integer"),
        ("", 'expected one of "abc"'),
    )


# References


@requirement("d:base-uri")
def test_without_ids_schemas_refer_to_each_other_by_file(world: AssetFolders) -> None:
    world.write_schema("a.schema.json", {"$ref": "b.schema.json"})
    world.write_schema("b.schema.json", {"$ref": "sub/c.json#/$defs/c"})
    world.write_schema("sub/c.json", {"$defs": {"c": {"$ref": "../d.schema.json"}}})
    world.write_schema("d.schema.json", {"type": "integer"})

    validator = make_validator(world.schemas)

    assert validator.validate(1, "a") == {"ok": True, "errors": []}
    assert validator.validate("x", "a") == build_failure(("", "expected integer"))
    assert validator.broken_schemas == {}


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
    world: AssetFolders, reference: str, other: dict[str, Any]
) -> None:
    world.write_schema("a.schema.json", {"$id": "https://one.test/v1/a.json", "items": {"$ref": reference}})
    world.write_schema("x.schema.json", {"$id": "https://two.test/x", "type": "integer"})
    definitions = {"x": {"type": "integer"}, **other.pop("$defs", {})}
    world.write_schema("b.schema.json", {"type": "integer", "$defs": definitions, **other})

    validator = make_validator(world.schemas)

    assert validator.broken_schemas == {}
    assert validator.validate([1, "x"], "a") == build_failure(("/1", "expected integer"))


def test_relative_references_behind_a_file_with_an_id_are_resolved_by_that_id(
    world: AssetFolders,
) -> None:
    world.write_schema("a.schema.json", {"$ref": "b.schema.json"})
    world.write_schema("b.schema.json", {"$id": "https://x.test/deep/b", "items": {"$ref": "c"}})
    world.write_schema("c.schema.json", {"$id": "https://x.test/deep/c", "type": "integer"})

    assert make_validator(world.schemas).validate(["x"], "a") == build_failure(("/0", "expected integer"))


def test_recursive_schemas_are_no_trouble(world: AssetFolders) -> None:
    world.write_schema("a.schema.json", {"properties": {"b": {"$ref": "b.schema.json"}}, "type": "object"})
    world.write_schema("b.schema.json", {"items": {"$ref": "a.schema.json"}})

    assert make_validator(world.schemas).validate({"b": [{"b": [1]}]}, "a") == build_failure(
        ("/b/0/b/0", "expected object")
    )


def test_what_looks_like_a_reference_inside_data_is_none(world: AssetFolders) -> None:
    odd = {"const": {"$ref": "nope.json"}, "default": {"$id": "::"}, "properties": {"$ref": {}}}
    world.write_schema("a.schema.json", odd)

    validator = make_validator(world.schemas)

    assert validator.broken_schemas == {}
    assert validator.validate({"$ref": "nope.json"}, "a")["ok"] is True


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
    world: AssetFolders, document: dict[str, Any]
) -> None:
    world.write_schema("bad.schema.json", document)
    world.write_schema("needs.schema.json", {"$ref": "bad.schema.json"})
    world.write_schema("good.schema.json", {"type": "integer"})

    validator = make_validator(world.schemas)

    assert validator.validate(1, "good")["ok"] is True
    assert validator.validate(1, "bad") == build_failure(("/schema", "schema_invalid"))
    assert validator.validate(1, "needs") == build_failure(("/schema", "schema_invalid"))
    assert set(validator.broken_schemas) == {"bad", "needs"}


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
def test_a_schema_of_an_unknown_dialect_is_read_as_draft_2020_12(world: AssetFolders, document: dict[str, Any]) -> None:
    world.write_schema("odd.schema.json", document)
    world.write_schema("needs.schema.json", {"$ref": "odd.schema.json"})
    world.write_schema("good.schema.json", {"type": "integer"})

    validator = make_validator(world.schemas)

    assert validator.broken_schemas == {}
    for name in ("odd", "needs", "good"):
        assert validator.validate(1, name)["ok"] is True
        assert validator.validate("x", name) == build_failure(("", "expected integer"))


@requirement("d:draft")
def test_a_schema_that_will_not_do_is_told_with_its_place_and_the_draft_it_is_read_as(
    world: AssetFolders,
) -> None:
    pairs = {"properties": {"pair": {"items": [{"type": "string"}]}}}
    world.write_schema("new.schema.json", pairs)
    world.write_schema("old.schema.json", pairs | {"$schema": DRAFTS["draft7"][0]})
    world.write_schema("declared.schema.json", pairs | {"$schema": DRAFTS["draft2020-12"][0]})
    world.write_schema("lost.schema.json", {"$ref": "#/$defs/gone"})

    validator = make_validator(world.schemas)

    where = "/properties/pair/items: expected boolean or object"
    assert validator.broken_schemas == {
        "new": f"{where} (without $schema it is read as draft 2020-12)",
        "declared": where,
        "lost": "Pointer '/$defs/gone' does not exist",
    }


def test_a_reference_never_goes_to_the_network(world: AssetFolders) -> None:
    requested_paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested_paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, *_args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        world.write_schema("a.schema.json", {"$ref": f"http://127.0.0.1:{server.server_port}/x.json"})
        validator = make_validator(world.schemas)
    finally:
        server.shutdown()
        server.server_close()

    assert validator.validate(1, "a") == build_failure(("/schema", "schema_invalid"))
    assert requested_paths == []


def test_of_two_schemas_with_one_id_the_first_is_referred_to(world: AssetFolders) -> None:
    world.write_schema("a.schema.json", {"$id": "https://x.test/same", "type": "integer"})
    world.write_schema("b.schema.json", {"$id": "https://x.test/same", "type": "string"})
    world.write_schema("c.schema.json", {"$ref": "https://x.test/same"})

    validator = make_validator(world.schemas)

    assert [validator.validate(1, name)["ok"] for name in "abc"] == [True, False, True]


# Markers


@requirement("d:alias:schema-ref")
@pytest.mark.parametrize("marker", ["$schemaRef", "$schema"])
def test_a_marker_is_ignored_unless_the_schema_knows_it(world: AssetFolders, marker: str) -> None:
    world.write_schema("closed.schema.json", {"properties": {}, "additionalProperties": False})
    world.write_schema("knows.schema.json", {"properties": {marker: {"const": "x"}}})

    validator = make_validator(world.schemas)

    assert validator.validate({marker: 5}, "closed")["ok"] is True
    assert validator.validate({"a": {marker: 5}}, "closed")["ok"] is False
    assert validator.validate({marker: 5}, "knows") == build_failure((f"/{marker}", 'expected "x"'))


def test_validating_changes_neither_asset_nor_schema(world: AssetFolders) -> None:
    path = world.write_schema("a.schema.json", {"properties": {"a": {"default": 1}}, "$comment": "x"})
    asset = {"$schemaRef": "a.schema.json"}
    roots = sources.locate_sources(make_settings(schemas_dir=str(world.schemas)))
    files = library.read_library(roots)

    AssetValidator(files.schemas, roots.schemas).validate(asset, "a")

    assert asset == {"$schemaRef": "a.schema.json"}
    assert files.schemas["a"].document == json.loads(path.read_text())


# Threads


def test_one_judge_serves_many_threads() -> None:
    validator = load_showcase()
    rng = random.Random(1)
    cases = [(n, _mutate_asset(a, rng)) for n, a in (rng.choice(_collect_valid_assets()) for _ in range(200))]
    expected = [validator.validate(asset, name) for name, asset in cases]

    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            verdicts = list(pool.map(lambda case: validator.validate(case[1], case[0]), cases))
            assert verdicts == expected


# Wording


WORDING_CASES: list[tuple[Any, Any]] = [
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


def test_the_words_of_every_keyword_are_the_golden_ones(world: AssetFolders) -> None:
    """Check that a library that changes its own words, or their order, does not change ours."""
    lines = []
    for number, (schema, _asset) in enumerate(WORDING_CASES):
        world.write_schema(f"s{number}.schema.json", schema)
    validator = make_validator(world.schemas)
    for number, (schema, asset) in enumerate(WORDING_CASES):
        answer = validator.validate(asset, f"s{number}")
        lines.append(json.dumps([schema, asset, answer["errors"]], ensure_ascii=False))

    golden_files.compare_golden_file("assets_wording.ndjson", "\n".join(lines) + "\n")


@pytest.mark.parametrize("draft", DRAFTS)
def test_no_keyword_is_worded_by_accident(draft: str) -> None:
    """Check that our own words cover every violation that the official suite can provoke."""
    groups, registry = _read_suite(draft)

    for name in groups:
        for group in groups[name]:
            schema = group["schema"]
            declared = schema if isinstance(schema, bool) else {"$schema": DRAFTS[draft][0], **schema}
            validator = Validator(declared, registry=registry)
            for case in group["tests"]:
                for violation in validator.find_violations(case["data"]):
                    assert "does not satisfy" not in violation.message, violation
