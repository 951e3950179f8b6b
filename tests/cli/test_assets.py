"""Tests of `cleats assets` and `--validate` as used by people and by scripts."""

import errno
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cleats.cli import asset_validation
from tests.support.assets import SHOWCASE_FOLDER, AssetFolders
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement

COMMAND_TIMEOUT_SECONDS = 60


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "set").symlink_to(SHOWCASE_FOLDER)
    return tmp_path


def run_cleats(
    home: Path, *words: str, stderr: int = subprocess.PIPE, **environ: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cleats", *words],
        cwd=home,
        env={
            "HOME": str(home),
            "PYTHONPATH": str(REPOSITORY_ROOT),
            "PYTHONIOENCODING": "utf-8",
            "SYN_SCHEMAS_DIR": "set",
            **environ,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        encoding="utf-8",
        timeout=COMMAND_TIMEOUT_SECONDS,
        check=False,
    )


def run_assets(home: Path, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return run_cleats(home, "assets", *words, stderr=subprocess.PIPE, **environ)


# --validate


VALID_EXAMPLE_PATH = "set/examples/Tone_Example.json"


@pytest.mark.parametrize(
    "words",
    [
        ("--validate", VALID_EXAMPLE_PATH, "nope.json"),
        ("--validate", VALID_EXAMPLE_PATH, "--validate", "nope.json"),
        ("--validate", VALID_EXAMPLE_PATH, "assets", "list"),
    ],
)
def test_validate_of_more_than_one_file_is_refused_rather_than_done_by_half(home: Path, words: tuple[str, ...]) -> None:
    process = run_cleats(home, *words)

    assert (process.returncode, process.stdout) == (2, "")
    assert "--validate takes one PATH" in process.stderr
    assert "cleats assets validate" in process.stderr


@requirement("d:cli:validate", "d:cli:exit-codes")
@pytest.mark.parametrize(
    ("path", "code", "payload"),
    [
        ("set/examples/Tone_Example.json", 0, {"ok": True, "errors": [], "schema": "tone"}),
        (
            "set/examples/SynestheticAsset_Dusk.json",
            0,
            {"ok": True, "errors": [], "schema": "nested-synesthetic-asset"},
        ),
        (
            "bad.json",
            1,
            {
                "ok": False,
                "reason": "validation_failed",
                "errors": [{"path": "/name", "msg": "expected string"}],
                "schema": "light",
            },
        ),
        (
            "unknown.json",
            1,
            {
                "ok": False,
                "reason": "validation_failed",
                "errors": [{"path": "/schema", "msg": "schema_not_found"}],
                "schema": "unknown",
            },
        ),
        ("plain.json", 0, {"ok": True, "errors": [], "schema": "nested-synesthetic-asset"}),
        ("nope.json", 2, {"ok": False, "reason": "io_error", "detail": "file_not_found"}),
        ("set", 2, {"ok": False, "reason": "io_error", "detail": "read_failed"}),
        (
            "broken.json",
            2,
            {"ok": False, "reason": "parse_error", "detail": "json_decode_error: line 2 column 1"},
        ),
        (
            "half.json",
            2,
            {
                "ok": False,
                "reason": "parse_error",
                "detail": "json_decode_error: lone surrogate \\ud800 (byte 1)",
            },
        ),
        ("latin.json", 2, {"ok": False, "reason": "parse_error", "detail": "not_utf8"}),
    ],
)
def test_validate_prints_one_line_of_json_and_exits_with_what_it_means(
    home: Path, path: str, code: int, payload: dict[str, Any]
) -> None:
    bad = {"$schemaRef": "light.json", "name": 1, "palette": ["#000000"]}
    (home / "bad.json").write_text(json.dumps(bad))
    (home / "unknown.json").write_text('{"schema": "unknown"}')
    nested = home / "set" / "examples" / "SynestheticAsset_Dusk.json"
    (home / "plain.json").write_bytes(nested.read_bytes())
    (home / "broken.json").write_text('{"a":\n}')
    (home / "half.json").write_bytes(rb'"\ud800"')
    (home / "latin.json").write_bytes(b'"\xff"')

    process = run_cleats(home, "--validate", path)

    assert (process.returncode, process.stderr) == (code, "")
    assert process.stdout.count("\n") == 1
    assert json.loads(process.stdout) == payload


@requirement("d:cli:exit-codes")
def test_validate_takes_nan_for_a_parse_error(home: Path) -> None:
    (home / "nan.json").write_text("[NaN]")

    process = run_cleats(home, "--validate", "nan.json")

    payload = json.loads(process.stdout)
    assert (process.returncode, payload["ok"], payload["reason"]) == (2, False, "parse_error")
    assert payload["detail"].startswith("json_decode_error: ")


@requirement("d:cli:exit-codes")
def test_validate_without_its_folder_is_an_io_error(home: Path) -> None:
    process = run_cleats(home, "--validate", "x.json", SYN_SCHEMAS_DIR="nowhere")

    assert process.returncode == 2
    assert json.loads(process.stdout) == {
        "ok": False,
        "reason": "io_error",
        "detail": "SYN_SCHEMAS_DIR: the folder 'nowhere' does not exist",
    }


# list and show


def test_list_shows_schemas_and_examples(home: Path) -> None:
    process = run_assets(home, "list")
    machine = json.loads(run_assets(home, "list", "--json").stdout)

    assert process.returncode == 0
    lines = process.stdout.splitlines()
    assert lines[0] == "Schemas"
    assert "  tone               1.2.0  set/jsonschema/tone.schema.json" in lines
    assert "  tone                      set/examples/drafts/Tone_Broken.json" in lines
    assert [len(machine["schemas"]), len(machine["examples"])] == [5, 6]


def test_list_without_schemas_says_how_to_have_some(tmp_path: Path) -> None:
    process = run_assets(tmp_path, "list", SYN_SCHEMAS_DIR="")

    assert process.returncode == 0
    assert process.stdout == "Schemas\n  none\nExamples\n  none\n"
    assert "--schemas DIR" in process.stderr


def test_list_says_which_schema_cannot_be_used(tmp_path: Path) -> None:
    world = AssetFolders(tmp_path)
    world.write_schema("a.schema.json", {"$ref": "gone.json"})

    process = run_assets(tmp_path, "list", SYN_SCHEMAS_DIR="schemas")

    assert "a cannot be used: 'gone.json' does not exist" in process.stderr


def test_show_prints_a_schema_by_name_and_an_example_by_path(home: Path) -> None:
    schema = run_assets(home, "show", "tone")
    example = run_assets(home, "show", "Tone_Example.json")
    neither = run_assets(home, "show", "nope")
    near = run_assets(home, "show", "ton")
    empty = run_assets(home, "show", "tone", SYN_SCHEMAS_DIR="")

    assert json.loads(schema.stdout)["title"] == "Tone"
    assert json.loads(example.stdout)["name"] == "lead"
    assert (neither.returncode, neither.stdout) == (1, "")
    assert neither.stderr == "No schema or example is named 'nope'. See: cleats assets list\n"
    assert "Did you mean: tone?" in near.stderr
    assert "Give the folder of the schemas with --schemas DIR or SYN_SCHEMAS_DIR." in empty.stderr


def test_a_schema_that_cannot_be_used_is_said_with_its_reason(tmp_path: Path) -> None:
    world = AssetFolders(tmp_path)
    world.write_schema("a.schema.json", {"$ref": "gone.json"})
    world.write_example("a.json", {})

    process = run_assets(tmp_path, "validate", "examples/a.json", "--schemas", "schemas")

    assert process.returncode == 1
    assert "  the schema 'a' cannot be used: 'gone.json' does not exist\n" in process.stdout


# validate


def test_a_tree_is_checked_and_reported_by_file_pointer_and_message(home: Path) -> None:
    process = run_assets(home, "validate", "set/")

    assert process.returncode == 1
    assert process.stdout == (
        "set/examples/drafts/Tone_Broken.json (tone)\n"
        "  /envelope/attack  expected at least 0\n"
        "  /frequency        expected more than 0\n"
        "  /name             expected at least 1 character\n"
        '  /volume           unexpected property "volume"\n'
        '  /waveform         expected one of "sine", "square", "triangle", "sawtooth"\n'
        "\n"
        "11 files: 5 valid, 1 invalid, 5 without a schema\n"
    )


def test_a_tree_of_valid_files_is_a_success(home: Path) -> None:
    process = run_assets(home, "validate", "set/examples/Tone_Example.json", "set/jsonschema")

    assert (process.returncode, process.stdout) == (0, "6 files: 1 valid, 5 without a schema\n")


def test_a_tree_in_which_no_file_has_a_schema_is_no_success(home: Path) -> None:
    process = run_assets(home, "validate", "set/jsonschema")

    assert process.returncode == 1
    assert process.stdout.startswith("5 files: 5 without a schema\nChoose the schema with --schema NAME.")


def test_a_folder_without_a_file_to_check_is_no_success(home: Path) -> None:
    (home / "empty").mkdir()

    process = run_assets(home, "validate", "empty")

    assert (process.returncode, process.stdout) == (1, "0 files: no file to check\n")


def test_a_folder_that_may_not_be_read_is_told_as_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shut, real_scandir = tmp_path / "shut", os.scandir
    shut.mkdir()

    def scandir(path: str) -> Any:
        if Path(path) == shut:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", scandir)  # root may read every folder
    checked_files = list(asset_validation.find_files([str(tmp_path)]))

    assert [checked_file.path for checked_file in checked_files] == [str(shut)]
    with pytest.raises(asset_validation.UnreadableFile):
        asset_validation.read_document(checked_files[0].path)


def test_the_report_for_scripts_has_every_file(home: Path) -> None:
    process = run_assets(home, "validate", "set/", "--json")

    report = json.loads(process.stdout)
    assert (process.returncode, report["ok"], process.stdout.count("\n")) == (1, False, 1)
    by_path = {result["path"]: result for result in report["results"]}
    assert by_path["set/examples/Tone_Example.json"]["ok"] is True
    assert by_path["set/examples/drafts/Tone_Broken.json"]["errors"][1] == {
        "path": "/frequency",
        "msg": "expected more than 0",
    }
    assert by_path["set/jsonschema/tone.schema.json"]["skipped"] is True


def test_a_file_whose_name_is_not_utf8_costs_the_report_for_scripts_nothing(home: Path) -> None:
    name = os.fsdecode(b"Tone_caf\xe9.json")
    (home / "tree").mkdir()
    (home / "tree" / name).write_bytes((home / VALID_EXAMPLE_PATH).read_bytes())

    process = run_assets(home, "validate", "tree", "--json")

    [result] = json.loads(process.stdout)["results"]
    assert (process.returncode, result["path"], result["ok"]) == (0, f"tree/{name}", True)


def test_an_unreadable_file_counts_more_than_an_invalid_one(home: Path) -> None:
    (home / "tree").mkdir()
    (home / "tree" / "broken.json").write_text("{")
    (home / "tree" / "tone.json").write_text("{}")

    process = run_assets(home, "validate", "tree", "nope.json")

    assert process.returncode == 2
    assert "tree/broken.json\n  it is not valid JSON (line 1 column 2)\n" in process.stdout
    assert "nope.json\n  the file does not exist\n" in process.stdout
    assert process.stdout.endswith("3 files: 1 invalid, 2 unreadable\n")


def test_a_schema_can_be_chosen_and_a_wrong_marker_is_no_excuse(home: Path) -> None:
    (home / "tree").mkdir()
    (home / "tree" / "x.json").write_text('{"$schemaRef": "typo.schema.json"}')

    marked = run_assets(home, "validate", "tree")
    chosen = run_assets(home, "validate", "tree", "--schema", "common")

    assert marked.returncode == 1
    assert marked.stdout.startswith("tree/x.json\n  unknown schema 'typo'\n")
    known_schemas = "common, control, light, synesthetic-asset, tone"
    assert f"Choose the schema with --schema NAME. Known schemas: {known_schemas}.\n" in marked.stdout
    assert (chosen.returncode, chosen.stdout) == (0, "1 file: 1 valid\n")


def test_an_unknown_schema_is_an_error_of_the_command_not_of_the_file(home: Path) -> None:
    (home / "x.json").write_text("{}")

    process = run_assets(home, "validate", "x.json", "--schema", "comon")

    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("Error: --schema: unknown schema 'comon'. Known schemas: common, ")


def test_the_folder_of_the_schemas_can_be_given_on_the_command_line(home: Path) -> None:
    process = run_assets(home, "validate", "set/examples/", "--schemas", "set/jsonschema", SYN_SCHEMAS_DIR="")

    assert "6 files: 5 valid, 1 invalid" in process.stdout


@pytest.mark.parametrize("option", ["--schemas", "--examples"])
def test_a_folder_that_is_not_there_is_said_of_the_option_that_names_it(home: Path, option: str) -> None:
    process = run_assets(home, "list", option, "nowhere")

    assert process.returncode == 2
    assert process.stderr == f"Error: {option}: the folder 'nowhere' does not exist\n"


def test_a_file_can_be_held_against_the_file_of_a_schema(home: Path) -> None:
    schema, asset = "set/jsonschema/tone.schema.json", "set/examples/drafts/Tone_Broken.json"

    process = run_assets(home, "validate", asset, "--schema", schema, SYN_SCHEMAS_DIR="")
    gone = run_assets(home, "validate", asset, "--schema", "set/jsonschema/nope.json")

    assert process.stdout.startswith(f"{asset} (tone)\n  /envelope/attack  expected at least 0\n")
    assert gone.returncode == 2
    assert "--schema: the file 'set/jsonschema/nope.json' does not exist" in gone.stderr


def test_the_file_of_a_schema_is_read_with_what_it_refers_to_and_without_its_neighbours(tmp_path: Path) -> None:
    schemas = tmp_path / "schemas"
    (schemas / "sub").mkdir(parents=True)
    documents = {
        "main.json": {"properties": {"a": {"$ref": "sub/part.json#/$defs/a"}, "b": {"$ref": "https://x.test/b.json"}}},
        "sub/part.json": {"$defs": {"a": {"$ref": "leaf.json"}}},
        "sub/leaf.json": {"type": "integer"},
        "b.json": {"$id": "https://x.test/b.json", "type": "string"},
    }
    for name, document in documents.items():
        (schemas / name).write_text(json.dumps(document))
    os.mkfifo(schemas / "neighbour.schema.json")  # reading it would never end
    (schemas / "broken.schema.json").write_text("{")
    (tmp_path / "asset.json").write_text('{"a": "x", "b": 1}')

    process = run_assets(tmp_path, "validate", "asset.json", "--schema", "schemas/main.json", SYN_SCHEMAS_DIR="")

    assert process.stdout.startswith("asset.json (main)\n  /a  expected integer\n  /b  expected string\n")
    assert process.stderr == ""


@pytest.mark.parametrize(
    ("name", "text", "report"),
    [
        ("a.yaml", "name: x\nday: 2026-01-31\n", "1 file: 1 valid\n"),
        ("a.yml", "- 1\n", "a.yml (a)\n  (root)  expected object\n"),
        ("a.yaml", "name: 5\n", "a.yaml (a)\n  /name  expected string\n"),
        ("a.yaml", "1: x\n", "a.yaml\n  it is not valid YAML (the key 1 is not text)\n"),
        ("a.yaml", "a: [1\n", "a.yaml\n  it is not valid YAML (while parsing a flow sequence"),
        ("a.yaml", "a: .nan\n", "a.yaml\n  it is not valid YAML (Out of range float values are not JSON compliant"),
        (
            "a.yaml",
            "a: !!python/object:os.system x\n",
            "a.yaml\n  it is not valid YAML (could not determine a constructor",
        ),
        ("a.yaml", "a: &a [*a]\n", "a.yaml\n  it is not valid YAML (Circular reference detected)\n"),
        ("a.jsonc", '{"name": "x", /* c */ } // d', "1 file: 1 valid\n"),
        ("a.jsonc", '{"name": 5,}', "a.jsonc (a)\n  /name  expected string\n"),
        ("a.jsonc", '{"a": 1, "a": 2}', "a.jsonc\n  it is not valid JSON with comments ('a' occurs twice)\n"),
        ("a.json", "{} // d", "a.json\n  it is not valid JSON (line 1 column 4)\n"),
    ],
)
def test_yaml_and_json_with_comments_are_checked_like_json(tmp_path: Path, name: str, text: str, report: str) -> None:
    (tmp_path / "schemas").mkdir()
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "day": {"type": "string"}}}
    (tmp_path / "schemas" / "a.schema.json").write_text(json.dumps(schema))
    (tmp_path / name).write_text(text)

    process = run_assets(tmp_path, "validate", name, "--schemas", "schemas")

    assert process.stdout.startswith(report), process.stdout


def test_without_any_schema_the_report_says_how_to_have_some(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")

    process = run_assets(tmp_path, "validate", "a.json", SYN_SCHEMAS_DIR="")

    assert "Known schemas: none; give their folder with --schemas DIR." in process.stdout


def test_a_bar_is_drawn_in_a_terminal_and_only_there(home: Path) -> None:
    parent, child = pty.openpty()
    try:
        process = run_cleats(home, "assets", "validate", "set/", stderr=child)
        os.close(child)
        drawn = b""
        while chunk := _read_terminal(parent):
            drawn += chunk
    finally:
        os.close(parent)

    assert b"Validating" in drawn
    assert b"100%" in drawn
    assert "Validating" not in process.stdout
    assert run_assets(home, "validate", "set/").stderr == ""


def _read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # how Linux says that the other side is closed
        return b""


# diff and publish


def test_diff_shows_changes_and_exits_as_diff_does(home: Path) -> None:
    (home / "a.json").write_text('{"a": 1, "b": [1], "c": {"d": true}}')
    (home / "b.json").write_text('{"a": 1.0, "b": [2], "e": null}')

    differ = run_assets(home, "diff", "a.json", "b.json")
    patch = run_assets(home, "diff", "a.json", "b.json", "--json")
    same = run_assets(home, "diff", "a.json", "a.json")
    broken = run_assets(home, "diff", "a.json", "nope.json")

    assert (differ.returncode, differ.stdout) == (1, "~ /b [2]\n- /c\n+ /e null\n")
    assert json.loads(patch.stdout)[1] == {"op": "remove", "path": "/c"}
    assert (same.returncode, same.stdout) == (0, "")
    assert (broken.returncode, broken.stdout) == (2, "")
    assert "nope.json" in broken.stderr


def test_publish_prints_the_answer_and_exits_with_it(home: Path) -> None:
    example = "set/examples/Tone_Example.json"

    off = run_assets(home, "publish", example)
    wrong = run_assets(
        home,
        "publish",
        "set/examples/drafts/Tone_Broken.json",
        SYN_BACKEND_URL="http://127.0.0.1:1",
    )
    gone = run_assets(home, "publish", example, SYN_BACKEND_URL="http://127.0.0.1:1")
    missing = run_assets(home, "publish", "nope.json")

    assert [process.returncode for process in (off, wrong, gone, missing)] == [1, 1, 1, 2]
    assert json.loads(off.stdout)["detail"] == "backend disabled"
    assert "SYN_BACKEND_URL" in off.stderr
    assert json.loads(wrong.stdout)["reason"] == "validation_failed"
    assert json.loads(gone.stdout)["detail"] == "network_unreachable"


def test_looking_at_assets_imports_no_heavy_library(home: Path) -> None:
    code = (
        "import sys\nfrom cleats.cli.main import cli\n"
        "try:\n    cli.main(['assets', 'validate', 'set/'], 'cleats')\n"
        "finally:\n    print(*sorted(sys.modules), file=sys.stderr)"
    )

    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=home,
        env={"HOME": str(home), "SYN_SCHEMAS_DIR": "set"},
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_SECONDS,
        check=False,
    )

    imported = {name.partition(".")[0] for name in process.stderr.split()}
    assert "jsonschema_rs" in imported
    assert not imported & {"mcp", "pydantic", "httpx2", "anyio", "asyncio", "opentelemetry"}
