"""Where schemas and examples come from."""

from pathlib import Path

import pytest

from cleats.settings import SettingError, Settings
from cleats.toolsets.assets.sources import locate
from tests.assets_world import WIRES, Wire, client, write
from tests.requirements import requirement


def clone(folder: Path, *, released: bool = False) -> Path:
    """A clone with one schema and one example, in the old layout or the new one."""
    schemas, examples = (
        ("docs/schema/0.7.3", "docs/examples/0.7.3") if released else ("jsonschema", "examples")
    )
    write(folder / schemas / "tone.schema.json", {"type": "object"})
    write(folder / examples / "Tone_Example.json", {"$schemaRef": "jsonschema/tone.schema.json"})
    return folder


@requirement("d:sources:submodule", "d:environment")
@pytest.mark.parametrize("wire", WIRES)
def test_the_submodule_is_served_when_nothing_is_configured(tmp_path: Path, wire: Wire) -> None:
    clone(tmp_path / "libs" / "synesthetic-schemas")

    with client(wire, tmp_path) as c:
        schemas, examples = c.call("list_schemas")["schemas"], c.call("list_examples")["examples"]

    base = "libs/synesthetic-schemas"
    assert [row["path"] for row in schemas] == [f"{base}/jsonschema/tone.schema.json"]
    assert [row["path"] for row in examples] == [f"{base}/examples/Tone_Example.json"]


@requirement("d:sources:environment", "d:environment")
@pytest.mark.parametrize("wire", WIRES)
def test_the_variables_win_over_the_submodule(tmp_path: Path, wire: Wire) -> None:
    clone(tmp_path / "libs" / "synesthetic-schemas")
    write(tmp_path / "mine" / "own.schema.json", {})

    with client(wire, tmp_path, SYN_SCHEMAS_DIR="mine", SYN_EXAMPLES_DIR="mine") as c:
        schemas, examples = c.call("list_schemas")["schemas"], c.call("list_examples")["examples"]

    assert [row["path"] for row in schemas] == ["mine/own.schema.json"]
    assert [row["path"] for row in examples] == ["mine/own.schema.json"]


@requirement("d:sources:environment", "d:sources:submodule")
def test_a_variable_wins_over_its_own_half_of_the_submodule_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = clone(tmp_path / "libs" / "synesthetic-schemas").relative_to(tmp_path)
    write(tmp_path / "mine" / "own.schema.json", {})
    monkeypatch.chdir(tmp_path)

    found = [locate(Settings(schemas_dir="mine")), locate(Settings(examples_dir="mine"))]

    shown = [
        (each.schemas and each.schemas.shown, each.examples and each.examples.shown)
        for each in found
    ]
    assert shown == [("mine", f"{base}/examples"), (f"{base}/jsonschema", "mine")]


@requirement("d:sources:none", "d:sources:no-fixtures")
@pytest.mark.parametrize("wire", WIRES)
def test_with_neither_listings_are_empty_and_nothing_is_found(tmp_path: Path, wire: Wire) -> None:
    clone(tmp_path / "tests" / "fixtures")

    with client(wire, tmp_path) as c:
        assert c.call("list_schemas") == {"ok": True, "schemas": []}
        assert c.call("list_examples") == {"ok": True, "examples": []}
        assert c.call("get_schema", name="tone") == {"ok": False, "reason": "not_found"}
        assert c.call("get_example", path="x.json") == {"ok": False, "reason": "not_found"}


@pytest.mark.parametrize("released", [False, True])
def test_a_clone_may_stand_for_the_folders_in_it(tmp_path: Path, released: bool) -> None:
    clone(tmp_path, released=released)
    schemas, examples = (
        ("docs/schema/0.7.3", "docs/examples/0.7.3") if released else ("jsonschema", "examples")
    )

    for settings in (
        Settings(schemas_dir=str(tmp_path), examples_dir=str(tmp_path)),
        Settings(schemas_dir=str(tmp_path)),
    ):
        found = locate(settings)

        assert found.schemas is not None
        assert found.examples is not None
        assert found.schemas.shown == f"{tmp_path}/{schemas}"
        assert found.examples.shown == f"{tmp_path}/{examples}"


def test_of_several_released_versions_the_newest_counts(tmp_path: Path) -> None:
    for version in ("0.7.3", "0.10.0", "0.9.9"):
        write(tmp_path / "docs" / "schema" / version / "a.schema.json", {})

    found = locate(Settings(schemas_dir=str(tmp_path)))

    assert found.schemas is not None
    assert found.schemas.folder.name == "0.10.0"


def test_a_folder_with_schemas_in_it_is_no_clone(tmp_path: Path) -> None:
    write(tmp_path / "own.schema.json", {})
    clone(tmp_path)

    found = locate(Settings(schemas_dir=str(tmp_path), examples_dir=str(tmp_path)))

    assert found.schemas is not None
    assert found.examples is not None
    assert found.schemas.folder == found.examples.folder == tmp_path.resolve()


@pytest.mark.parametrize("name", ["schemas_dir", "examples_dir"])
def test_a_configured_folder_that_is_not_there_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(SettingError, match=f"SYN_{name.upper()}: there is no folder"):
            locate(Settings(**{name: str(path)}))  # type: ignore[arg-type]


@pytest.mark.parametrize("wire", WIRES)
def test_a_server_does_not_start_without_a_configured_folder(tmp_path: Path, wire: Wire) -> None:
    import subprocess  # noqa: PLC0415

    from tests.assets_world import serve  # noqa: PLC0415

    done = subprocess.run(
        serve(wire),
        env={"HOME": str(tmp_path), "SYN_EXAMPLES_DIR": "nowhere"},
        cwd=tmp_path,
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: SYN_EXAMPLES_DIR: there is no folder 'nowhere'\n"


@requirement("d:environment")
def test_the_defaults_are_the_specs() -> None:
    settings = Settings()

    assert (settings.schemas_dir, settings.examples_dir, settings.backend_url) == ("", "", "")
    assert settings.backend_assets_path == "/synesthetic-assets/"
    assert settings.rpc_frame_limit == 1 << 20


def test_a_plain_json_file_that_is_no_schema_is_not_served(tmp_path: Path) -> None:
    write(tmp_path / "a.schema.json", {})
    write(tmp_path / "b.json", {"type": "object"})
    write(tmp_path / "b.schema.json", {"title": "the stronger"})
    write(tmp_path / "package.json", {"name": "x", "type": "module"})
    write(tmp_path / "list.json", [1])
    write(tmp_path / "sub" / "c.schema.json", {})

    with client("rpc", tmp_path, SYN_SCHEMAS_DIR=".") as c:
        schemas = c.call("list_schemas")["schemas"]

    assert [row["path"] for row in schemas] == ["./a.schema.json", "./b.schema.json"]
