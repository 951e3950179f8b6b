"""The eight tools, each over both wires, on real processes."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cleats import app
from cleats.contract.payload import FLAT
from cleats.contract.versions import TOOLING_VERSION
from cleats.settings import Settings, make_settings
from tests.support import golden_files
from tests.support.assets import (
    ASSET_WIRES,
    SHOWCASE_FOLDER,
    AssetClient,
    AssetFolders,
    Wire,
    build_failure,
    encode_compact,
    open_asset_client,
)
from tests.support.requirements import requirement
from tests.support.shell import EXIT_TIMEOUT_SECONDS

TOOL_NAMES = [
    "diff_assets",
    "get_example",
    "get_schema",
    "list_examples",
    "list_schemas",
    "populate_backend",
    "validate_asset",
    "validate_many",
]
TONE_ASSET = {"name": "lead", "waveform": "sine", "frequency": 440}


@pytest.fixture(scope="module", params=ASSET_WIRES)
def showcase(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[AssetClient]:
    """Yield a client of one server over our examples, for the tests that only read."""
    wire: Wire = request.param
    home = tmp_path_factory.mktemp("home")
    (home / "set").symlink_to(SHOWCASE_FOLDER)
    with open_asset_client(wire, home, SYN_SCHEMAS_DIR="set/jsonschema", SYN_EXAMPLES_DIR="set/examples") as c:
        yield c


@pytest.fixture
def world(tmp_path: Path) -> AssetFolders:
    return AssetFolders(tmp_path / "world")


# Listings


@requirement("d:list-schemas", "d:list-schemas:order", "d:sources:environment")
def test_list_schemas_gives_name_version_and_path_by_name(showcase: AssetClient) -> None:
    answer = showcase.call("list_schemas")

    assert answer == {
        "ok": True,
        "schemas": [
            {"name": name, "version": "1.2.0", "path": f"set/jsonschema/{name}.schema.json"}
            for name in ("common", "control", "light", "synesthetic-asset", "tone")
        ],
    }


@requirement("d:list-examples", "d:list-examples:order", "d:sources:environment")
@pytest.mark.parametrize("component", [{}, {"component": "all"}, {"component": " * "}])
def test_list_examples_gives_all_by_component_and_path(showcase: AssetClient, component: dict[str, str]) -> None:
    answer = showcase.call("list_examples", **component)

    assert [tuple(row.values()) for row in answer["examples"]] == [
        ("control", "set/examples/Control_Example.json"),
        ("light", "set/examples/Light_Example.json"),
        ("nested-synesthetic-asset", "set/examples/SynestheticAsset_Dusk.json"),
        ("synesthetic-asset", "set/examples/SynestheticAsset_Dawn.json"),
        ("tone", "set/examples/Tone_Example.json"),
        ("tone", "set/examples/drafts/Tone_Broken.json"),
    ]
    assert set(answer) == {"ok", "examples"}


@requirement("d:list-schemas:order", "d:list-examples:order")
def test_names_come_before_paths_and_paths_before_folders(world: AssetFolders) -> None:
    """Check that a hyphen sorts before the dot of a suffix and files before the folders below."""
    for name in ("a", "a-b", "B"):
        world.write_schema(f"{name}.schema.json", {"version": "1"})
    for path in ("z/a.json", "a-b.json", "x.json", "b/x.json"):
        world.write_example(path, {"schema": "a" if path != "a-b.json" else "B"})

    tools = {t.name: t for t in app.build_registry(_make_settings(world), ["assets"])}
    schemas = _run_tool(tools["list_schemas"])["schemas"]
    examples = _run_tool(tools["list_examples"], component="all")["examples"]

    assert [row["name"] for row in schemas] == ["B", "a", "a-b"]
    inside = [(row["component"], row["path"]) for row in examples]
    base = world.examples.as_posix()
    assert inside == [
        ("B", f"{base}/a-b.json"),
        ("a", f"{base}/b/x.json"),
        ("a", f"{base}/x.json"),
        ("a", f"{base}/z/a.json"),
    ]


@requirement("d:list-examples:filter")
@pytest.mark.parametrize(
    ("component", "paths"),
    [
        ("tone", ["Tone_Example.json", "drafts/Tone_Broken.json"]),
        ("Tone_Broken", ["drafts/Tone_Broken.json"]),
        ("Tone", []),
        ("nope", []),
    ],
)
def test_list_examples_takes_a_component_or_the_name_of_a_file(
    showcase: AssetClient, component: str, paths: list[str]
) -> None:
    answer = showcase.call("list_examples", component=component)

    assert [row["path"] for row in answer["examples"]] == [f"set/examples/{p}" for p in paths]


# Schemas and examples


@requirement("d:get-schema", "d:guard:schemas-unchanged")
def test_get_schema_gives_the_document_as_it_is_in_the_file(showcase: AssetClient) -> None:
    showcase.call("validate_asset", asset=TONE_ASSET, schema="tone")
    answer = showcase.call("get_schema", name="tone")

    document = json.loads((SHOWCASE_FOLDER / "jsonschema" / "tone.schema.json").read_text())
    assert answer == {"ok": True, "schema": document, "version": "1.2.0"}
    assert encode_compact(answer["schema"]) == encode_compact(document)


@requirement("d:get-schema:not-found")
@pytest.mark.parametrize("name", ["nope", "tone.schema.json", "tone.json", "Tone", " "])
def test_get_schema_of_an_unknown_name_is_not_found(showcase: AssetClient, name: str) -> None:
    assert showcase.call("get_schema", name=name) == {"ok": False, "reason": "not_found"}


@requirement("d:get-example", "d:get-example:validated")
@pytest.mark.parametrize(
    ("path", "schema", "validated"),
    [
        ("Tone_Example.json", "tone", True),
        ("drafts/Tone_Broken.json", "tone", False),
        ("SynestheticAsset_Dusk.json", "nested-synesthetic-asset", True),
        ("SynestheticAsset_Dawn.json", "synesthetic-asset", True),
    ],
)
def test_get_example_gives_the_example_its_schema_and_whether_it_is_valid(
    showcase: AssetClient, path: str, schema: str, validated: bool
) -> None:
    answer = showcase.call("get_example", path=path)

    example = json.loads((SHOWCASE_FOLDER / "examples" / path).read_text())
    assert answer == {"ok": True, "example": example, "schema": schema, "validated": validated}


@requirement("d:get-example:not-found")
def test_get_example_of_an_unknown_path_is_not_found(showcase: AssetClient) -> None:
    answer = showcase.call("get_example", path="nope.json")

    assert answer == {"ok": False, "reason": "not_found"}


@requirement("d:get-example")
def test_every_listed_path_can_be_fed_back(showcase: AssetClient) -> None:
    examples = showcase.call("list_examples")["examples"]

    answers = [showcase.call("get_example", path=row["path"]) for row in examples]

    assert [answer["schema"] for answer in answers] == [row["component"] for row in examples]


# Validation


@requirement("d:validate")
def test_an_asset_is_ok_exactly_when_it_fits_its_schema(showcase: AssetClient) -> None:
    fitting = showcase.call("validate_asset", asset=TONE_ASSET, schema="tone")
    failing = showcase.call("validate_asset", asset={**TONE_ASSET, "frequency": "high"}, schema="tone")

    assert fitting == {"ok": True, "errors": []}
    assert failing == build_failure(("/frequency", "expected number"))


@requirement("d:error:validation", "d:errors:pointers", "d:errors:order")
def test_every_violation_is_listed_by_path_and_message(showcase: AssetClient) -> None:
    asset = {
        "name": "",
        "tone": {"name": "x", "waveform": "noise", "partials": [0.5, 2, "x"], "a/b~c": 1},
        "light": {"name": "x", "palette": ["#000000", "red", "#000000"]},
        "controls": [{"name": "x", "target": "gain", "range": [0, 1, 2]}],
    }

    answer = showcase.call("validate_asset", asset=asset, schema="synesthetic-asset")

    assert answer == build_failure(
        ("/controls/0/range/2", "nothing is allowed here"),
        ("/controls/0/target", 'expected to match "^(/[^/]+)+$"'),
        ("/light/palette", "expected unique items"),
        ("/light/palette/1", 'expected to match "^#[0-9a-f]{6}$"'),
        ("/name", "expected at least 1 character"),
        ("/tone", 'missing required property "frequency"'),
        ("/tone/a~1b~0c", 'unexpected property "a/b~c"'),
        ("/tone/partials/1", "expected at most 1"),
        ("/tone/partials/2", "expected number"),
        ("/tone/waveform", 'expected one of "sine", "square", "triangle", "sawtooth"'),
    )


@requirement("d:errors:pointers")
def test_the_root_is_the_empty_pointer(showcase: AssetClient) -> None:
    answer = showcase.call("validate_asset", asset=[], schema="tone")

    assert answer == build_failure(("", "expected object"))


@requirement("d:alias", "d:alias:schema-ref")
def test_the_alias_validates_as_the_canonical_schema_and_ignores_the_reference(
    showcase: AssetClient,
) -> None:
    asset = {"$schemaRef": "https://nowhere.test/other.json", "name": "x", "tone": TONE_ASSET}
    wrong = {**asset, "tone": 1}

    for schema in ("nested-synesthetic-asset", "synesthetic-asset"):
        assert showcase.call("validate_asset", asset=asset, schema=schema)["ok"] is True
        assert showcase.call("validate_asset", asset=wrong, schema=schema) == build_failure(
            ("/tone", "expected object")
        )


@requirement("d:alias:schema-ref")
def test_only_the_top_level_reference_is_ignored(showcase: AssetClient) -> None:
    asset = {"name": "x", "tone": {**TONE_ASSET, "$schemaRef": "tone.schema.json"}}

    answer = showcase.call("validate_asset", asset=asset, schema="nested-synesthetic-asset")

    assert answer == build_failure(("/tone/$schemaRef", 'unexpected property "$schemaRef"'))


@requirement("d:alias:examples")
def test_every_nested_example_validates_as_a_nested_asset(showcase: AssetClient) -> None:
    paths = [row["path"] for row in showcase.call("list_examples")["examples"]]
    nested = [path for path in paths if "/SynestheticAsset_" in path]

    assets = [showcase.call("get_example", path=path)["example"] for path in nested]

    assert len(assets) == 2
    for asset in assets:
        answer = showcase.call("validate_asset", asset=asset, schema="nested-synesthetic-asset")
        assert answer["ok"] is True


@pytest.mark.parametrize("schema", ["nope", "tone.schema.json"])
def test_an_unknown_schema_is_a_failed_validation(showcase: AssetClient, schema: str) -> None:
    for tool, arguments in (("validate_asset", {"asset": {}}), ("validate_many", {"assets": [{}]})):
        answer = showcase.call(tool, **arguments, schema=schema)

        assert answer == build_failure(("/schema", "schema_not_found"))


def test_validate_many_answers_for_each_asset_in_order(showcase: AssetClient) -> None:
    assets = [TONE_ASSET, {}, TONE_ASSET]

    answer = showcase.call("validate_many", assets=assets, schema="tone")

    single = [showcase.call("validate_asset", asset=asset, schema="tone") for asset in assets]
    assert answer == {"ok": False, "reason": "validation_failed", "results": single}
    assert showcase.call("validate_many", assets=[TONE_ASSET], schema="tone") == {
        "ok": True,
        "results": [{"ok": True, "errors": []}],
    }


def test_validate_many_refuses_more_than_its_limit(showcase: AssetClient) -> None:
    answer = showcase.call("validate_many", assets=[1] * 101, schema="tone")

    refusal = {"ok": False, "reason": "unsupported", "detail": "batch_too_large", "limit": 100}
    assert answer == refusal


# Patches


@requirement("d:diff", "d:diff:ops", "d:diff:order", "d:diff:arrays")
def test_diff_assets_gives_a_sorted_patch(showcase: AssetClient) -> None:
    base = {"b": {"x": 1, "y": [1, 2]}, "a~": 1, "a/": 2, "same": [True], "gone": None}
    new = {"b": {"x": True, "y": [1, 3]}, "a~": 2, "a/": 2.0, "same": [True], "new": {"k": []}}

    answer = showcase.call("diff_assets", base=base, new=new)

    assert answer == {
        "ok": True,
        "patch": [
            {"op": "replace", "path": "/a~0", "value": 2},
            {"op": "replace", "path": "/b/x", "value": True},
            {"op": "replace", "path": "/b/y", "value": [1, 3]},
            {"op": "remove", "path": "/gone"},
            {"op": "add", "path": "/new", "value": {"k": []}},
        ],
    }


# Arguments


@requirement("d:validate:schema-required")
@pytest.mark.parametrize(
    ("arguments", "path", "message"),
    [
        ({"asset": {}}, "/schema", 'missing required property "schema"'),
        ({"asset": {}, "schema": ""}, "/schema", "expected at least 1 character"),
        ({"asset": {}, "schema": None}, "/schema", "expected string"),
        ({"schema": "tone"}, "/asset", 'missing required property "asset"'),
        ({"asset": {}, "schema": "tone", "x": 1}, "/x", 'unexpected property "x"'),
    ],
)
def test_a_missing_or_wrong_argument_is_named(
    showcase: AssetClient, arguments: dict[str, Any], path: str, message: str
) -> None:
    if showcase.wire == "rpc":
        assert showcase.call("validate_asset", **arguments) == build_failure((path, message))
        return
    showcase.peer.send_call("bad", "validate_asset", **arguments)
    error = showcase.peer.wait_for_answer("bad")["error"]
    assert (error["code"], error["data"]["code"]) == (-32602, "INVALID_REQUEST")
    assert [detail["message"] for detail in error["data"]["details"]] == [message]


@requirement("d:tools:over-stdio")
def test_every_tool_is_served_and_answers_as_its_schema_says(showcase: AssetClient) -> None:
    tools = {tool.name: tool for tool in app.build_registry(Settings(), ["assets"])}
    assert sorted(tools) == TOOL_NAMES

    for tool in tools.values():
        assert tool.payload is FLAT
        assert tool.output_schema is not None
        answer = showcase.call(tool.name, **tool.examples[0]["arguments"])
        jsonschema.Draft202012Validator(tool.output_schema).validate(answer)


@requirement("d:tools:deterministic")
def test_the_same_call_has_the_same_answer_whatever_came_before(showcase: AssetClient) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_schemas", {}),
        ("list_examples", {}),
        ("get_example", {"path": "drafts/Tone_Broken.json"}),
        ("validate_asset", {"asset": {"z": 1, "a": 2}, "schema": "light"}),
        ("diff_assets", {"base": {"b": 1, "a": 2}, "new": {"c": 1, "a": 3}}),
    ]

    first = [encode_compact(showcase.call(tool, **arguments)) for tool, arguments in calls]
    second = [encode_compact(showcase.call(tool, **arguments)) for tool, arguments in reversed(calls)]

    assert first == second[::-1]


def test_the_order_of_an_assets_keys_does_not_show_in_its_errors(showcase: AssetClient) -> None:
    one = {"name": "x", "palette": [], "pulse": {"b": 1, "a": 2}}
    other = {"pulse": {"a": 2, "b": 1}, "palette": [], "name": "x"}

    answers = [showcase.call("validate_asset", asset=asset, schema="light") for asset in (one, other)]

    assert answers[0] == answers[1]


# On the wire


def test_the_frames_of_the_rpc_wire_are_the_golden_ones(tmp_path: Path) -> None:
    """Compare requests and answers byte for byte, over the set that the documentation shows."""
    requests: list[dict[str, Any]] = [
        {"id": 1, "method": "list_schemas", "params": {}},
        {"id": "two", "method": "get_schema", "params": {"name": "control"}},
        {"id": 3, "method": "get_schema", "params": {"name": "nope"}},
        {"id": 4, "method": "list_examples", "params": {"component": "tone"}},
        {"id": 5, "method": "get_example", "params": {"path": "Light_Example.json"}},
        {"id": 6, "method": "get_example", "params": {"path": "../x.json"}},
        {"id": 7, "method": "validate_asset", "params": {"asset": TONE_ASSET, "schema": "tone"}},
        {"id": 8, "method": "validate_asset", "params": {"asset": {"é": 1}, "schema": "tone"}},
        {"id": 9, "method": "validate_asset", "params": {"asset": {}}},
        {"id": 10, "method": "validate_many", "params": {"assets": [TONE_ASSET, 1], "schema": "tone"}},
        {"id": 11, "method": "diff_assets", "params": {"base": {"a": 1}, "new": {"b": [1]}}},
        {"id": 12, "method": "populate_backend", "params": {"asset": {}}},
        {"id": 13, "method": "tools/list"},
    ]
    (tmp_path / "set").symlink_to(SHOWCASE_FOLDER)

    with open_asset_client("rpc", tmp_path, SYN_SCHEMAS_DIR="set") as c:
        for request in requests:
            c.peer.send({"jsonrpc": "2.0", **request})
        c.peer.close_input()
        c.peer.read_remaining()

    sent = [encode_compact({"jsonrpc": "2.0", **request}) + "\n" for request in requests]
    exchange = zip(sent, [line.decode() for line in c.peer.lines], strict=True)
    golden_files.compare_golden_file("assets_rpc.ndjson", "".join(a + b for a, b in exchange))


def test_the_tools_as_mcp_lists_them_are_the_golden_ones(tmp_path: Path) -> None:
    with open_asset_client("mcp", tmp_path) as c:
        c.peer.send_request("list", "tools/list")
        tools = c.peer.wait_for_answer("list")["result"]["tools"]

    assert [tool["name"] for tool in tools] == TOOL_NAMES
    golden_files.compare_golden_file("assets_tools.json", json.dumps(tools, indent=1, sort_keys=True) + "\n")


# Files are read once


@requirement("d:refresh:at-start", "d:stateless")
@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_files_are_read_when_the_server_starts_and_nothing_is_written(
    world: AssetFolders, tmp_path: Path, wire: Wire
) -> None:
    world.write_schema("a.schema.json", {"type": "integer"})
    world.write_example("a.json", {"n": 1})
    with open_asset_client(wire, tmp_path, CLEATS_TELEMETRY="off", **world.environ) as c:
        before = [c.call(tool) for tool in ("list_schemas", "list_examples")]
        world.write_schema("a.schema.json", {"type": "string"})
        world.write_schema("b.schema.json", {})
        (world.examples / "a.json").unlink()
        files_before = read_folder(tmp_path)
        after = [c.call(tool) for tool in ("list_schemas", "list_examples")]
        example = c.call("get_example", path="a.json")
        verdict = c.call("validate_asset", asset=1, schema="a")
        c.call("get_schema", name="a")
        c.call("validate_many", assets=[1, "x"], schema="a")
        c.call("diff_assets", base={}, new=[])
        c.call("populate_backend", asset=1)
        files_after = read_folder(tmp_path)

    assert before == after
    assert example == {"ok": True, "example": {"n": 1}, "schema": "a", "validated": False}
    assert verdict == {"ok": True, "errors": []}
    assert files_after == files_before


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, which is also the home of the server."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@requirement("d:get-example:validated", "d:list-schemas")
@pytest.mark.parametrize(
    ("document", "version"),
    [
        ({"version": "1.0", "x-schema-version": "2.0"}, "1.0"),
        ({"x-schema-version": "2.0"}, "2.0"),
        ({"version": 3}, "3"),
        ({"version": None}, ""),
        ({}, ""),
    ],
)
def test_a_schemas_version_is_what_it_says(world: AssetFolders, document: dict[str, Any], version: str) -> None:
    world.write_schema("a.schema.json", document)

    tools = {t.name: t for t in app.build_registry(_make_settings(world), ["assets"])}
    answer = _run_tool(tools["list_schemas"])

    assert [row["version"] for row in answer["schemas"]] == [version]


@pytest.mark.parametrize(
    ("path", "document", "schema"),
    [
        ("x.json", {"schema": "tone"}, "tone"),
        ("x.json", {"schema": "tone", "$schemaRef": "light.schema.json"}, "tone"),
        ("x.json", {"$schemaRef": "jsonschema/light.schema.json"}, "light"),
        ("x.json", {"$schemaRef": "https://a.test/1.0/light.json#/x"}, "light"),
        ("x.json", {"$schema": "jsonschema/light.schema.json"}, "light"),
        ("light.json", {"$schema": "https://json-schema.org/draft/2020-12/schema"}, "light"),
        ("SynestheticAsset_X.json", {}, "nested-synesthetic-asset"),
        ("deep/tone.valid.json", {}, "tone"),
        ("tone.json", {"x": [1]}, "tone"),
        ("light/loud.json", {}, "light"),
        ("light/tone.json", {}, "tone"),
        ("light/loud.json", {"schema": "tone"}, "tone"),
        ("light/deep/loud.json", {}, "nested-synesthetic-asset"),
        ("loud.json", {}, "nested-synesthetic-asset"),
    ],
)
def test_an_examples_schema_is_what_it_says_or_what_its_file_is_called(
    world: AssetFolders, path: str, document: object, schema: str
) -> None:
    for name in ("light", "tone", "synesthetic-asset"):
        world.write_schema(f"{name}.schema.json", {"type": "object"})
    world.write_example(path, document)

    tools = {t.name: t for t in app.build_registry(_make_settings(world), ["assets"])}
    answer = _run_tool(tools["list_examples"], component="all")

    assert [row["component"] for row in answer["examples"]] == [schema]


def test_an_example_that_nothing_names_keeps_the_name_of_its_file_where_no_asset_is_served(
    world: AssetFolders,
) -> None:
    world.write_schema("tone.schema.json", {"type": "object"})
    world.write_example("light/loud.json", {})

    tools = {t.name: t for t in app.build_registry(_make_settings(world), ["assets"])}
    answer = _run_tool(tools["list_examples"], component="all")

    assert [row["component"] for row in answer["examples"]] == ["loud"]


@requirement("d:package:version")
def test_the_package_says_its_version(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", "import cleats; print(cleats.__version__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=EXIT_TIMEOUT_SECONDS,
    )

    assert process.stdout == f"{TOOLING_VERSION}\n"


def test_assets_can_be_served_beside_another_toolset(tmp_path: Path) -> None:
    with open_asset_client("rpc", tmp_path, "code", "assets") as c:
        assert c.call("list_schemas") == {"ok": True, "schemas": []}
        assert c.call("check_status")["result"]["server"]["name"] == "cleats"


def _make_settings(world: AssetFolders) -> Settings:
    environ = world.environ
    return make_settings(schemas_dir=environ["SYN_SCHEMAS_DIR"], examples_dir=environ["SYN_EXAMPLES_DIR"])


def _run_tool(tool: Any, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = asyncio.run(tool.run(arguments, None))
    return answer
