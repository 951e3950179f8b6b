"""Nothing outside the roots is read, and no answer reveals anything about the host."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.assets import ASSET_WIRES, AssetClient, AssetFolders, Wire, build_failure, open_asset_client
from tests.support.requirements import requirement

NOT_FOUND_ANSWER = {"ok": False, "reason": "not_found"}
SECRET_TEXT = "the secret"


@pytest.fixture(scope="module", params=ASSET_WIRES)
def guarded_client(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[AssetClient]:
    """Yield a client of a server over roots full of traps, with secrets all around them."""
    wire: Wire = request.param
    home: Path = tmp_path_factory.mktemp("home")
    world = AssetFolders(home / "world")
    secret = world.folder / "secret.json"
    world.write_schema("a.schema.json", {"type": "object"})
    world.write_schema("broken.schema.json", "{")
    world.write_example("a.json", {})
    world.write_example("sub/a.inner.json", {"schema": "a"})
    world.write_example("broken.json", "{")
    world.write_example("latin.json", "")
    world.write_example("list.json", [1, 2])
    world.write_example("text.json", '"text"')
    world.write_example("null.json", "null")
    (world.examples / "latin.json").write_bytes(b'"\xff"')
    secret.write_text(json.dumps({"schema": SECRET_TEXT}))
    (world.examples / "link.json").symlink_to(secret)
    (world.examples / "inside.json").symlink_to("a.json")
    (world.examples / "loop.json").symlink_to("loop.json")
    (world.examples / "dangling.json").symlink_to("nothing.json")
    (world.examples / "out").symlink_to(world.folder)
    (world.examples / "folder.json").mkdir()
    (world.schemas / "secret.schema.json").symlink_to(secret)
    os.mkfifo(world.examples / "pipe.json")
    (world.examples / "closed.json").write_text("{}")
    (world.examples / "closed.json").chmod(0)
    with open_asset_client(wire, home, **world.environ) as c:
        yield c


def get_example(c: AssetClient, path: str) -> dict[str, Any]:
    answer = c.call("get_example", path=path)
    assert SECRET_TEXT not in json.dumps(answer)
    if not answer["ok"]:
        assert str(Path.cwd().anchor) + "tmp" not in json.dumps(answer)
    return answer


@pytest.mark.parametrize(
    "path",
    [
        "../secret.json",
        "sub/../../secret.json",
        "./../examples/../secret.json",
        "/etc/passwd",
        "/",
        "..",
        "out/secret.json/../../../secret.json",
        "a.json\0",
        "\0",
        "",
        "link.json",
        "sub/../link.json",
        "out",
    ],
)
def test_a_path_that_leads_out_is_not_found(guarded_client: AssetClient, path: str) -> None:
    assert get_example(guarded_client, path) == NOT_FOUND_ANSWER


@pytest.mark.parametrize("path", ["nope.json", "out/secret.json", "a", "a.JSON", "..%2fsecret.json", "sub/nope.json"])
def test_a_path_with_nothing_behind_it_is_not_found(guarded_client: AssetClient, path: str) -> None:
    assert get_example(guarded_client, path) == {"ok": False, "reason": "not_found"}


UNUSABLE_PATHS = ["sub", "folder.json", "sub/", "pipe.json", "broken.json", "latin.json", "loop.json", "dangling.json"]


@requirement("d:get-example:not-found")
@pytest.mark.parametrize("path", [*UNUSABLE_PATHS, "list.json", "text.json", "null.json"])
def test_what_is_no_readable_object_is_not_found(guarded_client: AssetClient, path: str) -> None:
    assert get_example(guarded_client, path) == NOT_FOUND_ANSWER


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_a_file_that_may_not_be_read_is_not_found(guarded_client: AssetClient) -> None:
    assert get_example(guarded_client, "closed.json") == NOT_FOUND_ANSWER


@pytest.mark.parametrize("path", ["a.json", "./a.json", "sub/../a.json", "sub//a.inner.json"])
def test_a_path_that_stays_inside_is_found(guarded_client: AssetClient, path: str) -> None:
    assert get_example(guarded_client, path)["ok"] is True


def test_an_absolute_path_inside_the_root_is_found(guarded_client: AssetClient) -> None:
    paths = [row["path"] for row in guarded_client.call("list_examples")["examples"]]

    assert all(Path(path).is_absolute() for path in paths)
    assert all(get_example(guarded_client, path)["ok"] for path in paths)


def test_only_what_is_inside_and_can_be_read_is_listed(guarded_client: AssetClient) -> None:
    names = [Path(row["path"]).name for row in guarded_client.call("list_examples")["examples"]]
    schemas = [row["name"] for row in guarded_client.call("list_schemas")["schemas"]]

    expected = ["a.inner.json", "a.json", "inside.json"]
    assert sorted(set(names) - {"closed.json"}) == expected
    assert schemas == ["a"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_a_file_whose_name_is_no_text_is_left_out_and_hides_no_other(tmp_path: Path, wire: Wire) -> None:
    world = AssetFolders(tmp_path)
    world.write_schema("a.schema.json", {"type": "object"})
    world.write_schema(os.fsdecode(b"b\xff.schema.json"), {"type": "object"})
    world.write_example("a.json", {})
    world.write_example(os.fsdecode(b"b\xff/a.json"), {})

    with open_asset_client(wire, tmp_path, **world.environ) as c:
        schemas = [row["name"] for row in c.call("list_schemas")["schemas"]]
        examples = [Path(row["path"]).name for row in c.call("list_examples")["examples"]]
        c.peer.close_input()
        c.peer.wait_for_exit()

    assert (schemas, examples) == (["a"], ["a.json"])
    assert c.peer.stderr.count(b"reason=name_not_utf8") == 2


@requirement("d:get-schema:not-found")
@pytest.mark.parametrize("name", ["../a", "/a", "a/b", "..", "a\0", "", "..\\a", "\\a", "/etc/passwd", "sub/part"])
def test_a_name_that_tries_to_be_a_path_is_not_found_and_no_schema_to_validate_by(
    guarded_client: AssetClient, name: str
) -> None:
    assert guarded_client.call("get_schema", name=name) == NOT_FOUND_ANSWER
    if name:
        answer = guarded_client.call("validate_asset", asset={}, schema=name)
        assert answer == build_failure(("/schema", "invalid_path"))


@pytest.mark.parametrize("name", ["a.schema.json", "a.json", "secret", "broken", "A"])
def test_a_name_that_is_no_schemas_is_not_found(guarded_client: AssetClient, name: str) -> None:
    assert guarded_client.call("get_schema", name=name) == {"ok": False, "reason": "not_found"}


def test_the_log_says_what_was_left_out(tmp_path: Path) -> None:
    world = AssetFolders(tmp_path / "world")
    world.write_example("broken.json", "{")
    world.write_schema("broken.schema.json", "{")
    with open_asset_client("rpc", tmp_path, **world.environ) as c:
        c.call("list_schemas")
        c.peer.close_input()
        c.peer.wait_for_exit()

    log_text = c.peer.stderr.decode()
    assert log_text.count("assets.skipped") == 2
    assert log_text.count("reason=not_json") == 2


@requirement("d:list-schemas")
def test_a_second_schema_of_a_name_and_a_schema_that_is_no_object_are_reported_at_the_start(tmp_path: Path) -> None:
    world = AssetFolders(tmp_path / "world")
    world.write_schema("a.schema.json", {"type": "object"})
    world.write_schema("a.json", {"type": "array"})
    world.write_schema("list.schema.json", [{"type": "object"}])
    world.write_schema("all.schema.json", "true")
    world.write_schema("none.json", "false")
    world.write_schema("data.json", [1, 2])
    with open_asset_client("rpc", tmp_path, **world.environ) as c:
        schemas = c.call("list_schemas")["schemas"]
        c.peer.close_input()
        c.peer.wait_for_exit()

    lines = sorted(line.partition("assets.skipped ")[2] for line in c.peer.stderr.decode().splitlines())
    assert [row["name"] for row in schemas] == ["a"]
    assert [line for line in lines if line] == [
        f"path={world.schemas}/a.json reason=name_taken_by {world.schemas}/a.schema.json",
        f"path={world.schemas}/all.schema.json reason=not_an_object",
        f"path={world.schemas}/list.schema.json reason=not_an_object",
        f"path={world.schemas}/none.json reason=not_an_object",
    ]


def test_without_any_root_no_path_is_found(tmp_path: Path) -> None:
    with open_asset_client("rpc", tmp_path) as c:
        assert c.call("get_example", path="a.json") == {"ok": False, "reason": "not_found"}
        for path in ("/etc/passwd", "../a.json", ""):
            assert c.call("get_example", path=path) == NOT_FOUND_ANSWER
