"""The locations from which schemas and examples are read."""

from pathlib import Path

import pytest

from cleats.settings import SettingError, Settings, make_settings
from cleats.toolsets.assets.sources import locate_sources
from tests.support.assets import ASSET_WIRES, Wire, open_asset_client, write_document
from tests.support.requirements import requirement


def make_clone(folder: Path, *, released: bool = False) -> Path:
    """Create a clone with one schema and one example, in the old layout or the new one."""
    schemas, examples = ("docs/schema/0.7.3", "docs/examples/0.7.3") if released else ("jsonschema", "examples")
    write_document(folder / schemas / "tone.schema.json", {"type": "object"})
    write_document(folder / examples / "Tone_Example.json", {"$schemaRef": "jsonschema/tone.schema.json"})
    return folder


@requirement("d:sources:submodule", "d:environment")
@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_the_submodule_is_served_when_nothing_is_configured(tmp_path: Path, wire: Wire) -> None:
    make_clone(tmp_path / "libs" / "synesthetic-schemas")

    with open_asset_client(wire, tmp_path) as c:
        schemas, examples = c.call("list_schemas")["schemas"], c.call("list_examples")["examples"]

    base = "libs/synesthetic-schemas"
    assert [row["path"] for row in schemas] == [f"{base}/jsonschema/tone.schema.json"]
    assert [row["path"] for row in examples] == [f"{base}/examples/Tone_Example.json"]


@requirement("d:sources:environment", "d:environment")
@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_the_variables_win_over_the_submodule(tmp_path: Path, wire: Wire) -> None:
    make_clone(tmp_path / "libs" / "synesthetic-schemas")
    write_document(tmp_path / "mine" / "own.schema.json", {})

    with open_asset_client(wire, tmp_path, SYN_SCHEMAS_DIR="mine", SYN_EXAMPLES_DIR="mine") as c:
        schemas, examples = c.call("list_schemas")["schemas"], c.call("list_examples")["examples"]

    assert [row["path"] for row in schemas] == ["mine/own.schema.json"]
    assert [row["path"] for row in examples] == ["mine/own.schema.json"]


@requirement("d:sources:environment", "d:sources:submodule")
def test_a_variable_wins_over_its_own_half_of_the_submodule_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = make_clone(tmp_path / "libs" / "synesthetic-schemas").relative_to(tmp_path)
    write_document(tmp_path / "mine" / "own.schema.json", {})
    monkeypatch.chdir(tmp_path)

    located_roots = [locate_sources(make_settings(**{name: "mine"})) for name in ("schemas_dir", "examples_dir")]

    root_names = [
        (roots.schemas and roots.schemas.display_path, roots.examples and roots.examples.display_path)
        for roots in located_roots
    ]
    assert root_names == [("mine", f"{base}/examples"), (f"{base}/jsonschema", "mine")]


@requirement("d:sources:none", "d:sources:no-fixtures")
@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_with_neither_listings_are_empty_and_nothing_is_found(tmp_path: Path, wire: Wire) -> None:
    make_clone(tmp_path / "tests" / "fixtures")

    with open_asset_client(wire, tmp_path) as c:
        assert c.call("list_schemas") == {"ok": True, "schemas": []}
        assert c.call("list_examples") == {"ok": True, "examples": []}
        assert c.call("get_schema", name="tone") == {"ok": False, "reason": "not_found"}
        assert c.call("get_example", path="x.json") == {"ok": False, "reason": "not_found"}


@pytest.mark.parametrize("released", [False, True])
def test_a_clone_may_stand_for_the_folders_in_it(tmp_path: Path, released: bool) -> None:
    make_clone(tmp_path, released=released)
    schemas, examples = ("docs/schema/0.7.3", "docs/examples/0.7.3") if released else ("jsonschema", "examples")

    for settings in (
        make_settings(schemas_dir=str(tmp_path), examples_dir=str(tmp_path)),
        make_settings(schemas_dir=str(tmp_path)),
    ):
        roots = locate_sources(settings)

        assert roots.schemas is not None
        assert roots.examples is not None
        assert roots.schemas.display_path == f"{tmp_path}/{schemas}"
        assert roots.examples.display_path == f"{tmp_path}/{examples}"


def test_of_several_released_versions_the_newest_counts(tmp_path: Path) -> None:
    for version in ("0.7.3", "0.10.0", "0.9.9"):
        write_document(tmp_path / "docs" / "schema" / version / "a.schema.json", {})

    roots = locate_sources(make_settings(schemas_dir=str(tmp_path)))

    assert roots.schemas is not None
    assert roots.schemas.folder.name == "0.10.0"


def test_a_folder_with_schemas_in_it_is_no_clone(tmp_path: Path) -> None:
    write_document(tmp_path / "own.schema.json", {})
    make_clone(tmp_path)

    roots = locate_sources(make_settings(schemas_dir=str(tmp_path), examples_dir=str(tmp_path)))

    assert roots.schemas is not None
    assert roots.examples is not None
    assert roots.schemas.folder == roots.examples.folder == tmp_path.resolve()


@pytest.mark.parametrize("name", ["schemas_dir", "examples_dir"])
def test_a_configured_folder_that_is_not_there_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(SettingError, match=f"SYN_{name.upper()}: the folder .* does not exist"):
            locate_sources(make_settings(**{name: str(path)}))


@pytest.mark.parametrize("wire", ASSET_WIRES)
def test_a_server_does_not_start_without_a_configured_folder(tmp_path: Path, wire: Wire) -> None:
    import subprocess  # noqa: PLC0415

    from tests.support.assets import build_serve_command  # noqa: PLC0415

    process = subprocess.run(
        build_serve_command(wire),
        env={"HOME": str(tmp_path), "SYN_EXAMPLES_DIR": "nowhere"},
        cwd=tmp_path,
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr == "Error: SYN_EXAMPLES_DIR: the folder 'nowhere' does not exist\n"


@requirement("d:environment")
def test_the_defaults_are_the_specs() -> None:
    settings = Settings()

    assert (settings.assets.schemas_dir, settings.assets.examples_dir, settings.assets.backend_url) == ("", "", "")
    assert settings.assets.backend_assets_path == "/synesthetic-assets/"
    assert settings.rpc_frame_limit == 1 << 20


def test_a_plain_json_file_that_is_no_schema_is_not_served(tmp_path: Path) -> None:
    write_document(tmp_path / "a.schema.json", {})
    write_document(tmp_path / "b.json", {"type": "object"})
    write_document(tmp_path / "b.schema.json", {"title": "the stronger"})
    write_document(tmp_path / "package.json", {"name": "x", "type": "module"})
    write_document(tmp_path / "list.json", [1])
    write_document(tmp_path / "sub" / "c.schema.json", {})

    with open_asset_client("rpc", tmp_path, SYN_SCHEMAS_DIR=".") as c:
        schemas = c.call("list_schemas")["schemas"]

    assert [row["path"] for row in schemas] == ["./a.schema.json", "./b.schema.json"]
