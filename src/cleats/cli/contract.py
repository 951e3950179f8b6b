"""The `cleats contract` command: snapshot, compare and check our contract or any MCP server's."""

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from cleats.cli import completion
from cleats.cli.contract_options import (
    ContractServer,
    ReportStyle,
    check_rule_names,
    print_rule_explanation,
    with_server_options,
    with_style_options,
)
from cleats.cli.output import UnusableInput, format_columns
from cleats.contract.compat import RULES, BumpLevel, explain_rule
from cleats.contract.snapshot import encode_snapshot
from cleats.settings import Settings

COMMITTED_SNAPSHOT_PATH = Path("contracts/tools.json")
LOCK_FILE_PATH = Path("mcp-contract.json")


@click.group()
@click.option(
    "--explain",
    metavar="RULE",
    callback=print_rule_explanation,
    expose_value=False,
    is_eager=True,
    help="Say what a rule means, and leave.",
)
def contract() -> None:
    """Snapshot, compare and check tool contracts.

    A snapshot is everything a client can come to depend on: names, schemas, defaults, errors,
    timeouts, annotations. Two snapshots are compared rule by rule; the report says what changed,
    whom it breaks (with a value that proves it), and which version bump it needs.

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
    """


@contract.command()
@with_server_options
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file.")
@click.pass_obj
def snapshot(settings: Settings, *, toolset: str | None, server: ContractServer | None, output: Path | None) -> None:
    """Print a snapshot: ours, a toolset's, or any MCP server's.

    Examples:
      cleats contract snapshot
      cleats contract snapshot --toolset todo -o contracts/tools.json
      cleats contract snapshot --server 'uvx mcp-server-git' -o mcp-contract.json
      cleats contract snapshot --url https://example.org/mcp
    """
    current_snapshot = _take_own_snapshot(settings, toolset) if server is None else server.take_snapshot()
    if output is None:
        click.echo(encode_snapshot(current_snapshot), nl=False)
    else:
        _write_snapshot(output, current_snapshot)


@contract.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@with_style_options
def diff(old: Path, new: Path, *, style: ReportStyle) -> None:
    """Compare two snapshot files.

    Exits 0 when every change is declared by its version bump, 1 when one is not, 2 when a file
    cannot be read.

    Example: cleats contract diff before.json after.json --format markdown
    """
    if not style.print_report(_load_snapshot(old), _load_snapshot(new), new).ok:
        sys.exit(1)


@contract.command()
@with_server_options
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    default=COMMITTED_SNAPSHOT_PATH,
    show_default=True,
    help="The committed snapshot of our own contract, or of the toolset's.",
)
@click.option(
    "--against-ref", metavar="REF", help="Measure the bump against that file as it is in a git commit, say origin/main."
)
@click.option(
    "--lock",
    type=click.Path(path_type=Path),
    default=LOCK_FILE_PATH,
    show_default=True,
    help="The lock file of another server.",
)
@click.option("--accept", is_flag=True, help="Write the file when the bump is right.")
@click.option(
    "--fail-on",
    type=click.Choice([level.value for level in BumpLevel][1:]),
    default=BumpLevel.PATCH.value,
    show_default=True,
    help="The least change of another server that is a problem.",
)
@with_style_options
@click.pass_obj
def check(
    settings: Settings,
    *,
    toolset: str | None,
    server: ContractServer | None,
    against: Path,
    against_ref: str | None,
    lock: Path,
    accept: bool,
    fail_on: str,
    style: ReportStyle,
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

    Examples:
      cleats contract check
      cleats contract check --against-ref origin/main --format markdown
      cleats contract check --toolset todo
      cleats contract check --server 'uvx mcp-server-git' --fail-on major
    """
    if server is None:
        _check_own_contract(settings, toolset, against, against_ref, style, accept=accept)
    else:
        _check_server_contract(server.take_snapshot(), lock, BumpLevel(fail_on), style, accept=accept)


def _check_own_contract(
    settings: Settings, toolset: str | None, path: Path, ref: str | None, style: ReportStyle, *, accept: bool
) -> None:
    current_snapshot = _take_own_snapshot(settings, toolset)
    if accept and ref is None and not path.exists():
        _write_snapshot(path, current_snapshot)
        return
    if ref is None and not path.exists():
        raise UnusableInput(f"there is no {path} here; --against says where, --accept writes it")
    base_snapshot = _load_snapshot(path) if ref is None else _load_snapshot_at_ref(ref, path)
    if not style.print_report(base_snapshot, current_snapshot, path).ok:
        sys.exit(1)
    if path.exists() and path.read_bytes() == encode_snapshot(current_snapshot):
        return
    if not accept:
        toolset_option = "" if toolset is None else f" --toolset {toolset}"
        accept_command = f"cleats contract check{toolset_option} --accept"
        _exit_with_problem(f"{path} is not the current contract; run: {accept_command}")
    _write_snapshot(path, current_snapshot)


def _check_server_contract(
    current_snapshot: dict[str, Any], path: Path, fail_on: BumpLevel, style: ReportStyle, *, accept: bool
) -> None:
    if not path.exists():
        if not accept:
            raise UnusableInput(f"there is no {path}; write it with --accept")
        _write_snapshot(path, current_snapshot)
        return
    report = style.print_report(_load_snapshot(path), current_snapshot, path)
    if accept:
        _write_snapshot(path, current_snapshot)
    elif change_count := len(report.filter_by_level(fail_on)):
        changes = f"{change_count} change{'s' if change_count > 1 else ''}"
        _exit_with_problem(f"the server is not what {path} says ({changes}); --accept agrees to it")


@contract.command()
@click.argument(
    "rule", required=False, callback=check_rule_names, shell_complete=completion.make_completer(lambda: RULES)
)
def rules(rule: str | None) -> None:
    """List the rules, or explain one.

    Examples:
      cleats contract rules
      cleats contract rules INPUT_NARROWED
    """
    if rule is not None:
        click.echo(explain_rule(RULES[rule]))
        return
    rows = [
        (listed_rule.level.value, "+1" if listed_rule.integer else "", listed_rule.id, listed_rule.purpose)
        for listed_rule in RULES.values()
    ]
    click.echo(format_columns(rows, indent=""))
    click.echo("\n+1: the schemaVersion of the tool has to rise as well.")


# Taking, reading and writing snapshots


def _take_own_snapshot(settings: Settings, toolset: str | None) -> dict[str, Any]:
    from cleats import app  # noqa: PLC0415 - only for our own contract
    from cleats.cli.tools import check_toolsets  # noqa: PLC0415

    if toolset in app.BUILTIN_TOOLSETS:
        raise click.UsageError(f"{toolset} is part of our own contract; leave --toolset out")
    if toolset is not None:
        check_toolsets((toolset,))
    return app.build_contract_snapshot(settings, toolset)


def _load_snapshot(path: Path) -> Any:
    try:
        return _parse_snapshot(path.read_bytes(), str(path))
    except OSError as error:
        raise UnusableInput(f"{path}: {error.strerror}") from None


def _load_snapshot_at_ref(ref: str, path: Path) -> Any:
    import anyio  # noqa: PLC0415

    from cleats.system.processes import process  # noqa: PLC0415

    object_name = f"{ref}:./{path.as_posix()}"
    try:
        completed = anyio.run(process.run, ["git", "show", "--end-of-options", object_name])
    except process.StartError as error:
        raise UnusableInput(str(error)) from None
    if completed.exit_code != 0:
        raise UnusableInput(completed.stderr.decode(errors="replace").strip())
    return _parse_snapshot(completed.stdout, object_name)


def _parse_snapshot(data: bytes, name: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise UnusableInput(f"{name} is not JSON") from None


def _write_snapshot(path: Path, current_snapshot: dict[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_snapshot(current_snapshot))
    except OSError as error:
        raise UnusableInput(f"{path}: {error.strerror}") from None
    click.echo(f"Wrote {path}.", err=True)


# Reporting


def _exit_with_problem(text: str) -> NoReturn:
    click.echo(f"Error: {text}", err=True)
    sys.exit(1)
