"""`cleats contract`: snapshot, compare and check tool contracts, ours and any MCP server's."""

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from cleats.cli import completing
from cleats.cli.contract_options import (
    CannotRunError,
    Server,
    Style,
    explained,
    known_rules,
    takes_server,
    takes_style,
)
from cleats.cli.printing import columns
from cleats.contract.compat import RULES, Level, explain
from cleats.contract.snapshot import dump
from cleats.settings import Settings

COMMITTED = Path("contracts/tools.json")
LOCK = Path("mcp-contract.json")


@click.group()
@click.option(
    "--explain",
    metavar="RULE",
    callback=explained,
    expose_value=False,
    is_eager=True,
    help="Say what a rule means, and leave.",
)
def contract() -> None:
    """Snapshot, compare and check tool contracts.

    A snapshot is everything a client can come to depend on: names, schemas, defaults, errors,
    timeouts, annotations. Two snapshots are compared rule by rule; the report says what changed,
    whom it breaks (with a value that proves it), and which version bump it needs.

    \b
    Our own contract, against the committed file:
      cleats contract check
      cleats contract check --accept          write the file, once the bump is right
    That of a toolset in a package of yours, in its repository:
      cleats contract check --toolset NAME
    Any MCP server, against a lock file:
      cleats contract check --server 'npx some-server' --accept
      cleats contract check --server 'npx some-server'
    Two files:
      cleats contract diff old.json new.json
    """  # noqa: D301 - click reads the backspace


@contract.command()
@takes_server
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file.")
@click.pass_obj
def snapshot(
    settings: Settings, *, toolset: str | None, server: Server | None, output: Path | None
) -> None:
    """Print a snapshot: ours, a toolset's, or any MCP server's.

    \b
    Examples:
      cleats contract snapshot
      cleats contract snapshot --toolset todo -o contracts/tools.json
      cleats contract snapshot --server 'uvx mcp-server-git' -o mcp-contract.json
      cleats contract snapshot --url https://example.org/mcp
    """  # noqa: D301 - click reads the backspace
    taken = _ours(settings, toolset) if server is None else server.snapshot()
    if output is None:
        click.echo(dump(taken), nl=False)
    else:
        _write(output, taken)


@contract.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@takes_style
def diff(old: Path, new: Path, *, style: Style) -> None:
    """Compare two snapshot files.

    Exits 0 when every change is declared by its version bump, 1 when one is not, 2 when a file
    cannot be read.

    \b
    Example: cleats contract diff before.json after.json --format markdown
    """  # noqa: D301 - click reads the backspace
    if not style.report(_load(old), _load(new), new).ok:
        sys.exit(1)


@contract.command()
@takes_server
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    default=COMMITTED,
    show_default=True,
    help="The committed snapshot of our own contract, or of the toolset's.",
)
@click.option(
    "--against-ref",
    metavar="REF",
    help="Measure the bump against that file as it is in a git commit, say origin/main.",
)
@click.option(
    "--lock",
    type=click.Path(path_type=Path),
    default=LOCK,
    show_default=True,
    help="The lock file of another server.",
)
@click.option("--accept", is_flag=True, help="Write the file when the bump is right.")
@click.option(
    "--fail-on",
    type=click.Choice([level.value for level in Level][1:]),
    default=Level.PATCH.value,
    show_default=True,
    help="The least change of another server that is a problem.",
)
@takes_style
@click.pass_obj
def check(
    settings: Settings,
    *,
    toolset: str | None,
    server: Server | None,
    against: Path,
    against_ref: str | None,
    lock: Path,
    accept: bool,
    fail_on: str,
    style: Style,
) -> None:
    """Refuse a contract change without its version bump.

    Without --server or --url the contract is our own. The committed file has to be the current
    contract to the byte, so that a change is reviewed as a diff; --accept writes it, but only
    together with the bump that the change needs.

    With --toolset it is that of a toolset which another package brings, under the version that
    this toolset has; the file is in the repository of that package.

    With --server or --url the contract is another server's, and the lock file is what you agreed
    to. Any change is a problem, words included, because models act on them; --fail-on major lets
    all but breaking ones pass. --accept writes the lock file in any case.

    Exits 0 when all is well, 1 when there is a contract problem, 2 when the check could not run.

    \b
    Examples:
      cleats contract check
      cleats contract check --against-ref origin/main --format markdown
      cleats contract check --toolset todo
      cleats contract check --server 'uvx mcp-server-git' --fail-on major
    """  # noqa: D301 - click reads the backspace
    if server is None:
        _check_ours(settings, toolset, against, against_ref, style, accept=accept)
    else:
        _check_theirs(server.snapshot(), lock, Level(fail_on), style, accept=accept)


def _check_ours(
    settings: Settings,
    toolset: str | None,
    path: Path,
    ref: str | None,
    style: Style,
    *,
    accept: bool,
) -> None:
    taken = _ours(settings, toolset)
    if accept and ref is None and not path.exists():
        _write(path, taken)
        return
    if ref is None and not path.exists():
        raise CannotRunError(f"there is no {path} here; --against says where, --accept writes it")
    before = _load(path) if ref is None else _load_ref(ref, path)
    if not style.report(before, taken, path).ok:
        sys.exit(1)
    if path.exists() and path.read_bytes() == dump(taken):
        return
    if not accept:
        whose = "" if toolset is None else f" --toolset {toolset}"
        run = f"cleats contract check{whose} --accept"
        _problem(f"{path} is not the current contract; run: {run}")
    _write(path, taken)


def _check_theirs(
    taken: dict[str, Any], path: Path, fail_on: Level, style: Style, *, accept: bool
) -> None:
    if not path.exists():
        if not accept:
            raise CannotRunError(f"there is no {path}; write it with --accept")
        _write(path, taken)
        return
    report = style.report(_load(path), taken, path)
    if accept:
        _write(path, taken)
    elif drifted := len(report.at_least(fail_on)):
        changes = "change" if drifted == 1 else "changes"
        _problem(f"the server is not what {path} says ({drifted} {changes}); --accept agrees to it")


@contract.command()
@click.argument(
    "rule", required=False, callback=known_rules, shell_complete=completing.one_of(lambda: RULES)
)
def rules(rule: str | None) -> None:
    """List the rules, or explain one.

    \b
    Examples:
      cleats contract rules
      cleats contract rules INPUT_NARROWED
    """  # noqa: D301 - click reads the backspace
    if rule is not None:
        click.echo(explain(RULES[rule]))
        return
    rows = [
        (one.level.value, "+1" if one.integer else "", one.id, one.purpose)
        for one in RULES.values()
    ]
    click.echo(columns(rows, indent=""))
    click.echo("\n+1: the schemaVersion of the tool has to rise as well.")


# Taking, reading and writing snapshots


def _ours(settings: Settings, toolset: str | None) -> dict[str, Any]:
    from cleats import app  # noqa: PLC0415 - only for our own contract
    from cleats.cli.tools import check_toolsets  # noqa: PLC0415

    if toolset in app.TOOLSETS:
        raise click.UsageError(f"{toolset} is part of our own contract; leave --toolset out")
    if toolset is not None:
        check_toolsets((toolset,))
    return app.contract_snapshot(settings, toolset)


def _load(path: Path) -> Any:
    try:
        return _parse(path.read_bytes(), str(path))
    except OSError as error:
        raise CannotRunError(f"{path}: {error.strerror}") from None


def _load_ref(ref: str, path: Path) -> Any:
    import anyio  # noqa: PLC0415

    from cleats.runtime import process  # noqa: PLC0415

    place = f"{ref}:./{path.as_posix()}"
    try:
        done = anyio.run(process.run, ["git", "show", "--end-of-options", place])
    except process.StartError as error:
        raise CannotRunError(str(error)) from None
    if done.exit_code != 0:
        raise CannotRunError(done.stderr.decode(errors="replace").strip())
    return _parse(done.stdout, place)


def _parse(data: bytes, name: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise CannotRunError(f"{name} is not JSON") from None


def _write(path: Path, taken: dict[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dump(taken))
    except OSError as error:
        raise CannotRunError(f"{path}: {error.strerror}") from None
    click.echo(f"Wrote {path}.", err=True)


# Reporting


def _problem(text: str) -> NoReturn:
    click.echo(f"Error: {text}", err=True)
    sys.exit(1)
