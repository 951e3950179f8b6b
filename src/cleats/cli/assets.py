"""`cleats assets`: the assets toolset for people and scripts, without a server."""

import json
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from cleats.cli import completing
from cleats.cli.printing import columns, echo_json, heading
from cleats.settings import Settings


class Unusable(click.ClickException):
    """A file that a command cannot begin with."""

    exit_code = 2


AS_JSON = click.option("--json", "as_json", is_flag=True, help="One line of JSON, for scripts.")


SCHEMAS = click.option(
    "--schemas", metavar="DIR", help="Folder of the schemas, instead of SYN_SCHEMAS_DIR."
)
EXAMPLES = click.option(
    "--examples", metavar="DIR", help="Folder of the examples, instead of SYN_EXAMPLES_DIR."
)


@click.group()
def assets() -> None:
    """Look at schemas and examples; validate, compare and publish assets.

    Schemas are the *.schema.json files of one folder. Without an option or a variable they are
    looked for in libs/synesthetic-schemas.

    \b
    Examples:
      cleats assets validate my.json --schema schemas/tone.schema.json
      cleats assets validate assets/ --schemas schemas/
      cleats assets diff old.json new.json
    """  # noqa: D301 - click reads the backspace


def _with(settings: Settings, schemas: str | None, examples: str | None = None) -> Settings:
    """The settings with what the command line says."""
    for option, folder in (("--schemas", schemas), ("--examples", examples)):
        if folder and not Path(folder).expanduser().is_dir():
            raise Unusable(f"{option}: there is no folder {folder!r}")
    return replace(
        settings,
        schemas_dir=settings.schemas_dir if schemas is None else schemas,
        examples_dir=settings.examples_dir if examples is None else examples,
    )


@assets.command("list")
@SCHEMAS
@EXAMPLES
@AS_JSON
@click.pass_obj
def list_(settings: Settings, *, schemas: str | None, examples: str | None, as_json: bool) -> None:
    """List the schemas and the examples.

    \b
    Examples:
      cleats assets list
      cleats assets list --schemas schemas/ --examples examples/
    """  # noqa: D301 - click reads the backspace
    from cleats.toolsets.assets.tools import assets as load  # noqa: PLC0415 - help needs none of it

    made = load(_with(settings, schemas, examples))
    found = {**_run(made.list_schemas), **_run(made.list_examples, component="all")}
    if as_json:
        _line({"schemas": found["schemas"], "examples": found["examples"]})
        return
    for title, rows in (("Schemas", found["schemas"]), ("Examples", found["examples"])):
        click.echo(heading(title))
        cells = [tuple(each or "-" for each in row.values()) for row in rows]
        click.echo(columns(cells) if cells else "  none")
    for name, reason in made.judge.broken.items():
        click.echo(f"{name} cannot be used: {reason}", err=True)
    if not found["schemas"]:
        click.echo("--schemas DIR, or SYN_SCHEMAS_DIR, says where schemas are.", err=True)


@assets.command()
@click.argument("name")
@SCHEMAS
@EXAMPLES
@click.pass_obj
def show(settings: Settings, name: str, *, schemas: str | None, examples: str | None) -> None:
    """Print a schema by its NAME, or an example by its path.

    Exits 0 when there is one, 1 when there is none.

    \b
    Examples:
      cleats assets show tone
      cleats assets show tone --schemas schemas/
    """  # noqa: D301 - click reads the backspace
    from cleats.contract.errors import ToolError  # noqa: PLC0415
    from cleats.toolsets.assets.tools import assets as load  # noqa: PLC0415

    made = load(_with(settings, schemas, examples))
    for tool, argument, key in (
        (made.get_schema, "name", "schema"),
        (made.get_example, "path", "example"),
    ):
        try:
            answer = _run(tool, **{argument: name})
        except ToolError:
            continue
        if answer["ok"]:
            echo_json(answer[key])
            return
    known = [*made.files.schemas, *made.files.examples]
    near = ", ".join(get_close_matches(name, known, n=3))
    advice = f"Did you mean: {near}?" if near else "See: cleats assets list"
    if not known:
        advice = "--schemas DIR, or SYN_SCHEMAS_DIR, says where schemas are."
    click.echo(f"There is no schema and no example {name!r}. {advice}", err=True)
    sys.exit(1)


@assets.command()
@click.argument("paths", nargs=-1, required=True, shell_complete=completing.files)
@click.option(
    "--schema",
    metavar="NAME|FILE",
    help="Check against this schema, whatever a file says; one of the folder, or any file.",
)
@SCHEMAS
@AS_JSON
@click.pass_obj
def validate(
    settings: Settings,
    paths: Sequence[str],
    *,
    schema: str | None,
    schemas: str | None,
    as_json: bool,
) -> None:
    """Check files, or every .json file below a folder.

    Each violation is reported with its place. A file's schema is the one it names in `schema`,
    `$schemaRef` or `$schema`, else the one that is called like the file up to its first dot, or
    like the folder that the file is in. Below a folder, files without a schema are left out and
    counted.

    \b
    Examples:
      cleats assets validate assets/ --schemas schemas/
      cleats assets validate my.json --schema schemas/tone.schema.json

    \b
    Exits 0  when every file is valid,
          1  when one is not, none has a schema, or there is none,
          2  when one, or a folder, cannot be read.
    """  # noqa: D301 - click reads the backspace
    from cleats.cli import checking  # noqa: PLC0415
    from cleats.toolsets.assets.tools import assets as load  # noqa: PLC0415

    if schema is not None and schemas is None and schema.endswith(".json"):
        schemas, schema = checking.place(schema)
    judge = load(_with(settings, schemas)).judge
    files = list(checking.files(paths))
    live = sys.stderr.isatty() and not as_json
    with click.progressbar(
        files, label="Validating", file=sys.stderr, hidden=not live or len(files) < 2
    ) as bar:
        checks = [checking.check(judge, file, schema) for file in bar]
    if as_json:
        _line(checking.as_json(checks))
    else:
        click.echo("\n".join(checking.report(checks, judge)))
    sys.exit(checking.exit_code(checks))


@assets.command()
@click.argument("base", shell_complete=completing.files)
@click.argument("new", shell_complete=completing.files)
@AS_JSON
@click.pass_obj
def diff(settings: Settings, base: str, new: str, *, as_json: bool) -> None:  # noqa: ARG001
    """Show what turns the file BASE into NEW.

    With --json that is a JSON Patch (RFC 6902).

    Exits 0 when they are the same, 1 when they differ, 2 when one cannot be read.

    \b
    Examples:
      cleats assets diff old.json new.json
      cleats assets diff old.json new.json --json > change.patch.json
    """  # noqa: D301 - click reads the backspace
    from cleats.toolsets.assets.patch import diff as compare  # noqa: PLC0415

    patch = compare(_document(base), _document(new))
    if as_json:
        _line(patch)
    else:
        for operation in patch:
            click.echo(_worded(operation))
    sys.exit(1 if patch else 0)


@assets.command()
@click.argument("file", shell_complete=completing.files)
@click.option("--no-validate", is_flag=True, help="Send it whether or not it is valid.")
@SCHEMAS
@click.pass_obj
def publish(settings: Settings, file: str, *, no_validate: bool, schemas: str | None) -> None:
    """Validate FILE and send it to the backend.

    SYN_BACKEND_URL says where that is; its answer is printed.

    Exits 0 when the backend took it, 1 when it did not, 2 when FILE cannot be read.

    \b
    Examples:
      SYN_BACKEND_URL=http://localhost:8000 cleats assets publish my.json
    """  # noqa: D301 - click reads the backspace
    from cleats.toolsets.assets.tools import assets as load  # noqa: PLC0415

    asset = _document(file)
    made = load(_with(settings, schemas))
    answer = _run(made.populate_backend, asset=asset, validate_first=not no_validate)
    _line(answer)
    if answer.get("detail") == "backend disabled":
        click.echo("SYN_BACKEND_URL says where the backend is.", err=True)
    sys.exit(0 if answer["ok"] else 1)


def validate_file(settings: Settings, path: str) -> int:
    """`--validate PATH`: one line of JSON, and the exit code that says the same."""
    from cleats.cli import checking  # noqa: PLC0415
    from cleats.settings import SettingError  # noqa: PLC0415
    from cleats.toolsets.assets.tools import assets as load  # noqa: PLC0415

    try:
        judge = load(settings).judge
    except SettingError as error:
        _line({"ok": False, "reason": "io_error", "detail": str(error)})
        return 2
    found = checking.check(judge, checking.File(path, named=True), None, surely=True)
    _line({**found.payload, **({"schema": found.schema} if found.schema else {})})
    return checking.exit_code([found])


def _run(tool: Any, **arguments: Any) -> dict[str, Any]:
    """Call a tool's handler. None of them says anything on the way."""
    import asyncio  # noqa: PLC0415

    answer: dict[str, Any] = asyncio.run(tool(arguments, None))
    return answer


def _document(path: str) -> Any:
    from cleats.cli import checking  # noqa: PLC0415

    try:
        return checking.document(path)
    except checking.Unreadable as error:
        raise Unusable(f"{path}: {error.reason}.") from None


def _worded(operation: Mapping[str, Any]) -> str:
    sign, colour = {"add": ("+", "green"), "remove": ("-", "red")}.get(
        operation["op"], ("~", "yellow")
    )
    value = ""
    if "value" in operation:
        value = " " + msgspec.json.encode(operation["value"]).decode()
    return click.style(f"{sign} {operation['path'] or '(root)'}", fg=colour) + value


def _line(value: object) -> None:
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:  # the name of a file that is not UTF-8, which JSON has to escape
        text = json.dumps(value, separators=(",", ":")).encode()
    click.echo(text + b"\n", nl=False)
