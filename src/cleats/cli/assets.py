"""The `cleats assets` command: the assets toolset for people and scripts, without a server."""

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from cleats.cli import tool_command
from cleats.cli.guesses import GuessingGroup
from cleats.cli.output import UnusableInput, echo_json, format_columns, style_heading
from cleats.contract.errors import ToolError
from cleats.settings import SettingError, Settings, replace_settings

if TYPE_CHECKING:
    from cleats.toolsets.assets.tools import AssetTools
    from cleats.toolsets.assets.validation import AssetValidator

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
SCHEMAS_OPTION = click.option("--schemas", metavar="DIR", help="Folder of the schemas, instead of SYN_SCHEMAS_DIR.")
EXAMPLES_OPTION = click.option("--examples", metavar="DIR", help="Folder of the examples, instead of SYN_EXAMPLES_DIR.")


@click.group(cls=GuessingGroup)
def assets() -> None:
    """List schemas and examples; validate, compare and publish assets.

    Schemas are the *.schema.json files of the folder that --schemas or SYN_SCHEMAS_DIR names.

    Examples:
      cleats assets validate my.json --schema schemas/tone.schema.json
      cleats assets validate assets/ --schemas schemas/
      cleats assets diff old.json new.json
    """


def _load_validator(settings: Settings, schema: str | None, schemas: str | None) -> "tuple[AssetValidator, str | None]":
    """Return the validator to use, and the name of the schema that every file is checked against, if one was given."""
    from cleats.toolsets.assets import library  # noqa: PLC0415 - help needs none of these
    from cleats.toolsets.assets.validation import AssetValidator  # noqa: PLC0415

    if schema is None or schemas is not None or not schema.endswith(".json"):
        return _load_assets(settings, schemas).validator, schema
    if not Path(schema).expanduser().is_file():
        raise UnusableInput(f"--schema: the file {schema!r} does not exist")
    try:
        schema_files, documents = library.read_schema_tree(Path(schema).expanduser())
    except library.UnusableFileError as error:
        raise UnusableInput(f"--schema: {schema!r} cannot be used ({error}).") from None
    return AssetValidator(schema_files, None, documents), next(iter(schema_files))


def _load_assets(settings: Settings, schemas: str | None, examples: str | None = None) -> "AssetTools":
    from cleats.toolsets.assets.tools import load_assets  # noqa: PLC0415 - help needs none of it

    for option, folder in (("--schemas", schemas), ("--examples", examples)):
        if folder and not Path(folder).expanduser().is_dir():
            raise UnusableInput(f"{option}: the folder {folder!r} does not exist")
    schemas_dir = settings.assets.schemas_dir if schemas is None else schemas
    examples_dir = settings.assets.examples_dir if examples is None else examples
    return load_assets(replace_settings(settings, schemas_dir=schemas_dir, examples_dir=examples_dir))


@assets.command("list")
@SCHEMAS_OPTION
@EXAMPLES_OPTION
@JSON_OPTION
@click.pass_obj
def list_(settings: Settings, *, schemas: str | None, examples: str | None, as_json: bool) -> None:
    """List the schemas and the examples.

    Examples:
      cleats assets list
      cleats assets list --schemas schemas/ --examples examples/
    """
    asset_tools = _load_assets(settings, schemas, examples)
    answer = {**_call_handler(asset_tools.list_schemas), **_call_handler(asset_tools.list_examples, component="all")}
    if as_json:
        _print_json_line({"schemas": answer["schemas"], "examples": answer["examples"]})
        return
    for title, rows in (("Schemas", answer["schemas"]), ("Examples", answer["examples"])):
        click.echo(style_heading(title))
        cells = [tuple(cell or "-" for cell in row.values()) for row in rows]
        click.echo(format_columns(cells) if cells else "  none")
    for name, reason in asset_tools.validator.broken_schemas.items():
        click.echo(f"{name} cannot be used: {reason}", err=True)
    if not answer["schemas"]:
        click.echo("Give the folder of the schemas with --schemas DIR or SYN_SCHEMAS_DIR.", err=True)


@assets.command()
@click.argument("name")
@SCHEMAS_OPTION
@EXAMPLES_OPTION
@click.pass_obj
def show(settings: Settings, name: str, *, schemas: str | None, examples: str | None) -> None:
    """Print a schema by its NAME, or an example by its path.

    Exits 0 if it exists, 1 if not.

    Examples:
      cleats assets show tone
      cleats assets show tone --schemas schemas/
    """
    asset_tools = _load_assets(settings, schemas, examples)
    for tool, argument, key in (
        (asset_tools.get_schema, "name", "schema"),
        (asset_tools.get_example, "path", "example"),
    ):
        with suppress(ToolError):
            if (answer := _call_handler(tool, **{argument: name}))["ok"]:
                echo_json(answer[key])
                return
    known_names = [*asset_tools.files.schemas, *asset_tools.files.examples]
    close_matches = ", ".join(get_close_matches(name, known_names, n=3))
    advice = f"Did you mean: {close_matches}?" if close_matches else "See: cleats assets list"
    if not known_names:
        advice = "Give the folder of the schemas with --schemas DIR or SYN_SCHEMAS_DIR."
    click.echo(f"No schema or example is named {name!r}. {advice}", err=True)
    sys.exit(1)


@assets.command()
@click.argument("paths", nargs=-1, required=True, shell_complete=tool_command.complete_files)
@click.option(
    "--schema",
    metavar="NAME|FILE",
    help="Use this schema: a name in the schema folder, or a schema file.",
)
@SCHEMAS_OPTION
@JSON_OPTION
@click.pass_obj
def validate(
    settings: Settings, paths: Sequence[str], *, schema: str | None, schemas: str | None, as_json: bool
) -> None:
    """Validate files, or every asset file below a folder.

    Asset files end in .json, .jsonc, .yaml or .yml.

    A file names its schema in `schema`, `$schemaRef` or `$schema`; otherwise the schema has the name of the
    file (up to its first dot) or of its folder. Below a folder, files without a schema are skipped and
    counted.

    Examples:
      cleats assets validate assets/ --schemas schemas/
      cleats assets validate my.json --schema schemas/tone.schema.json

    Exits 0  if every file is valid,
          1  if a file is invalid, or no file has a schema,
          2  if a file or folder cannot be read, or --schema is unknown or cannot be used.
    """
    from cleats.cli import asset_validation  # noqa: PLC0415 - help needs none of these

    judge, schema = _load_validator(settings, schema, schemas)
    if schema is not None and (reason := asset_validation.describe_unusable_schema(judge, schema)):
        raise UnusableInput(f"--schema: {reason}. {asset_validation.list_schemas(judge)}")
    files = list(asset_validation.find_files(paths))
    live = sys.stderr.isatty() and not as_json
    with click.progressbar(files, label="Validating", file=sys.stderr, hidden=not live or len(files) < 2) as bar:
        checks = [asset_validation.check_file(judge, file, schema) for file in bar]
    if as_json:
        _print_json_line(asset_validation.build_json_report(checks))
    else:
        click.echo("\n".join(asset_validation.render_report(checks, judge)))
    sys.exit(asset_validation.exit_code(checks))


@assets.command()
@click.argument("base", shell_complete=tool_command.complete_files)
@click.argument("new", shell_complete=tool_command.complete_files)
@JSON_OPTION
@click.pass_obj
def diff(settings: Settings, base: str, new: str, *, as_json: bool) -> None:  # noqa: ARG001
    """Show the difference between the files BASE and NEW.

    With --json, prints a JSON Patch (RFC 6902).

    Exits 0 if they are equal, 1 if they differ, 2 if one cannot be read.

    Examples:
      cleats assets diff old.json new.json
      cleats assets diff old.json new.json --json > change.patch.json
    """
    from cleats.toolsets.assets.patch import diff_values  # noqa: PLC0415 - help needs none of these

    patch = diff_values(_read_document(base), _read_document(new))
    if as_json:
        _print_json_line(patch)
    for operation in () if as_json else patch:
        sign, colour = {"add": ("+", "green"), "remove": ("-", "red")}.get(operation["op"], ("~", "yellow"))
        value = " " + msgspec.json.encode(operation["value"]).decode() if "value" in operation else ""
        click.echo(click.style(f"{sign} {operation['path'] or '(root)'}", fg=colour) + value)
    sys.exit(1 if patch else 0)


@assets.command()
@click.argument("file", shell_complete=tool_command.complete_files)
@click.option("--no-validate", is_flag=True, help="Skip the validation.")
@SCHEMAS_OPTION
@click.pass_obj
def publish(settings: Settings, file: str, *, no_validate: bool, schemas: str | None) -> None:
    """Validate FILE and send it to the backend.

    SYN_BACKEND_URL is the URL of the backend; its answer is printed.

    Exits 0 if the backend accepted it, 1 if not, 2 if FILE cannot be read.

    Examples:
      SYN_BACKEND_URL=http://localhost:8000 cleats assets publish my.json
    """
    asset = _read_document(file)
    asset_tools = _load_assets(settings, schemas)
    answer = _call_handler(asset_tools.populate_backend, asset=asset, validate_first=not no_validate)
    _print_json_line(answer)
    if answer.get("detail") == "backend disabled":
        click.echo("Set SYN_BACKEND_URL to the address of the backend.", err=True)
    sys.exit(0 if answer["ok"] else 1)


def validate_file(settings: Settings, path: str) -> int:
    """Validate one file for `--validate PATH`: print one line of JSON and return the exit code."""
    from cleats.cli import asset_validation  # noqa: PLC0415 - help needs none of these

    try:
        judge = _load_assets(settings, None).validator
    except SettingError as error:
        _print_json_line({"ok": False, "reason": "io_error", "detail": str(error)})
        return 2
    result = asset_validation.check_file(judge, asset_validation.AssetFile(path, is_explicit=True), None, is_asset=True)
    _print_json_line({**result.payload, **({"schema": result.schema} if result.schema else {})})
    return asset_validation.exit_code([result])


def _call_handler(tool: Any, **arguments: Any) -> dict[str, Any]:
    import asyncio  # noqa: PLC0415

    answer: dict[str, Any] = asyncio.run(tool(arguments, None))  # none of these handlers uses its context
    return answer


def _read_document(path: str) -> Any:
    from cleats.cli import asset_validation  # noqa: PLC0415 - help needs none of these

    try:
        return asset_validation.read_document(path)
    except asset_validation.UnreadableFile as error:
        raise UnusableInput(f"{path}: {error}.") from None


def _print_json_line(value: object) -> None:
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:  # the name of a file that is not UTF-8, which JSON has to escape
        text = json.dumps(value, separators=(",", ":")).encode()
    click.echo(text + b"\n", nl=False)
