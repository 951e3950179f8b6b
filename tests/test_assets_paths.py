"""Nothing outside the roots is read, and nothing about the host is said."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.assets_world import WIRES, Client, Wire, World, client, failed

SECRET = "the secret"


@pytest.fixture(scope="module", params=WIRES)
def guarded(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Client]:
    """A server over roots full of traps, with secrets all around them."""
    wire: Wire = request.param
    home: Path = tmp_path_factory.mktemp("home")
    world = World(home / "world")
    secret = world.folder / "secret.json"
    world.schema("a.schema.json", {"type": "object"})
    world.schema("broken.schema.json", "{")
    world.example("a.json", {})
    world.example("sub/a.inner.json", {"schema": "a"})
    world.example("broken.json", "{")
    world.example("latin.json", "")
    (world.examples / "latin.json").write_bytes(b'"\xff"')
    secret.write_text(json.dumps({"schema": SECRET}))
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
    with client(wire, home, **world.environ) as c:
        yield c


def ask(c: Client, path: str) -> dict[str, Any]:
    answer = c.call("get_example", path=path)
    assert SECRET not in json.dumps(answer)
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
def test_a_path_that_leads_out_is_an_invalid_path(guarded: Client, path: str) -> None:
    assert ask(guarded, path) == failed(("/path", "invalid_path"))


@pytest.mark.parametrize(
    "path", ["nope.json", "out/secret.json", "a", "a.JSON", "..%2fsecret.json", "sub/nope.json"]
)
def test_a_path_with_nothing_behind_it_is_not_found(guarded: Client, path: str) -> None:
    assert ask(guarded, path) == {"ok": False, "reason": "not_found"}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("sub", "not_a_file"),
        ("folder.json", "not_a_file"),
        ("sub/", "not_a_file"),
        ("pipe.json", "not_a_file"),
        ("broken.json", "not_json"),
        ("latin.json", "not_json"),
        ("loop.json", "unreadable"),
        ("dangling.json", "unreadable"),
    ],
)
def test_what_is_no_readable_file_says_so(guarded: Client, path: str, reason: str) -> None:
    assert ask(guarded, path) == failed(("/path", reason))


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_a_file_that_may_not_be_read_says_so(guarded: Client) -> None:
    assert ask(guarded, "closed.json") == failed(("/path", "unreadable"))


@pytest.mark.parametrize("path", ["a.json", "./a.json", "sub/../a.json", "sub//a.inner.json"])
def test_a_path_that_stays_inside_is_found(guarded: Client, path: str) -> None:
    assert ask(guarded, path)["ok"] is True


def test_an_absolute_path_inside_the_root_is_found(guarded: Client) -> None:
    listed = [row["path"] for row in guarded.call("list_examples")["examples"]]

    assert all(Path(path).is_absolute() for path in listed)
    assert all(ask(guarded, path)["ok"] for path in listed)


def test_only_what_is_inside_and_can_be_read_is_listed(guarded: Client) -> None:
    names = [Path(row["path"]).name for row in guarded.call("list_examples")["examples"]]
    schemas = [row["name"] for row in guarded.call("list_schemas")["schemas"]]

    expected = ["a.inner.json", "a.json", "inside.json"]
    assert sorted(set(names) - {"closed.json"}) == expected
    assert schemas == ["a"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
@pytest.mark.parametrize("wire", WIRES)
def test_a_file_whose_name_is_no_text_is_left_out_and_hides_no_other(
    tmp_path: Path, wire: Wire
) -> None:
    world = World(tmp_path)
    world.schema("a.schema.json", {"type": "object"})
    world.schema(os.fsdecode(b"b\xff.schema.json"), {"type": "object"})
    world.example("a.json", {})
    world.example(os.fsdecode(b"b\xff/a.json"), {})

    with client(wire, tmp_path, **world.environ) as c:
        schemas = [row["name"] for row in c.call("list_schemas")["schemas"]]
        examples = [Path(row["path"]).name for row in c.call("list_examples")["examples"]]
        c.peer.end_input()
        c.peer.wait()

    assert (schemas, examples) == (["a"], ["a.json"])
    assert c.peer.stderr.count(b"reason=name_not_utf8") == 2


@pytest.mark.parametrize("name", ["../a", "/a", "a/b", "..", "a\0", "", "..\\a", "\\a"])
def test_a_name_that_tries_to_be_a_path_is_refused(guarded: Client, name: str) -> None:
    assert guarded.call("get_schema", name=name) == failed(("/name", "invalid_path"))
    if name:
        answer = guarded.call("validate_asset", asset={}, schema=name)
        assert answer == failed(("/schema", "invalid_path"))


@pytest.mark.parametrize("name", ["a.schema.json", "a.json", "secret", "broken", "A"])
def test_a_name_that_is_no_schemas_is_not_found(guarded: Client, name: str) -> None:
    assert guarded.call("get_schema", name=name) == {"ok": False, "reason": "not_found"}


def test_the_log_says_what_was_left_out(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.example("broken.json", "{")
    world.schema("broken.schema.json", "{")
    with client("rpc", tmp_path, **world.environ) as c:
        c.call("list_schemas")
        c.peer.end_input()
        c.peer.wait()

    said = c.peer.stderr.decode()
    assert said.count("assets.skipped") == 2
    assert said.count("reason=not_json") == 2


def test_without_any_root_no_path_is_found(tmp_path: Path) -> None:
    with client("rpc", tmp_path) as c:
        assert c.call("get_example", path="a.json") == {"ok": False, "reason": "not_found"}
        for path in ("/etc/passwd", "../a.json"):
            assert c.call("get_example", path=path) == failed(("/path", "invalid_path"))
