"""The `cleats contract` command: snapshot, compare and check our contract or any MCP server's."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from cleats.cli import tool_command as completion
from cleats.cli.contract_config import ContractConfig, ContractServer, Threshold, load_config
from cleats.cli.contract_files import (
    COMMITTED_SNAPSHOT_PATH,
    RELEASED_NAME,
    RESULTS_NAME,
    build_contract_files,
    find_newest_release,
    load_contract,
    load_pair,
    load_snapshot,
    load_snapshot_at_ref,
    take_own_snapshot,
    write_snapshot,
)
from cleats.cli.contract_options import (
    ReportStyle,
    check_rule_names,
    reject_options,
    with_server_options,
    with_style_options,
)
from cleats.cli.guesses import GuessingGroup
from cleats.cli.output import UnusableInput, format_columns
from cleats.contract.compat import RULES, BumpLevel, SnapshotError, explain_rule
from cleats.contract.compat.ci_report import render_changelog
from cleats.contract.snapshot import encode_snapshot
from cleats.settings import Settings
from cleats.system.contract_comparison import compare_bounded

LOCK_FILE_PATH = Path("mcp-contract.json")
LEVEL_NAMES = [level.value for level in BumpLevel][1:]


def _path_option(name: str, default: Path, about: str) -> Callable[[Any], Any]:
    return click.option(name, type=click.Path(path_type=Path), default=default, show_default=True, help=about)


@click.group(cls=GuessingGroup)
def contract() -> None:
    """Snapshot, compare and check tool contracts.

    A snapshot holds everything that clients may depend on: names, schemas, defaults, errors,
    timeouts, annotations. A report lists each change, an example that fails because of it, and the
    version bump that it needs.

    Any MCP server, compared with a lock file:
      cleats contract check --server 'npx some-server' --update   write the lock file
      cleats contract check --server 'npx some-server'            compare with it
    Every server that cleats-contract.toml in the current folder lists:
      cleats contract check
    Two files:
      cleats contract diff old.json new.json
      cleats contract changelog old.json new.json
    A toolset in your own package, compared with the committed file:
      cleats contract check --toolset NAME
    Cleats itself, compared with the committed file:
      cleats contract check
      cleats contract check --accept          write the file after raising the version
      cleats contract release                 record the version as released
    """


@contract.command()
@with_server_options
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file.")
@click.pass_obj
def snapshot(settings: Settings, *, toolset: str | None, server: ContractServer | None, output: Path | None) -> None:
    """Print the snapshot of Cleats, a toolset or any MCP server.

    Examples:
      cleats contract snapshot
      cleats contract snapshot --toolset todo -o contracts/tools.json
      cleats contract snapshot --server 'uvx mcp-server-git' -o mcp-contract.json
      cleats contract snapshot --url https://example.org/mcp
    """
    current_snapshot = take_own_snapshot(settings, toolset) if server is None else server.take_snapshot()
    if output is None:
        click.echo(encode_snapshot(current_snapshot), nl=False)
    else:
        write_snapshot(output, current_snapshot)


@contract.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--fail-on",
    type=click.Choice(LEVEL_NAMES),
    help="Fail on every change of this level or above, even if the version was raised for it.",
)
@with_style_options
def diff(
    old: Path,
    new: Path,
    *,
    fail_on: str | None,
    style: ReportStyle,
    config: ContractConfig,  # noqa: ARG001 - it is read for its rules
) -> None:
    """Compare two snapshot files.

    A file may also hold the result of `tools/list`. If only one of the files is a contract of Cleats,
    which records more, only what a server lists is compared.

    Exits 0 if the version was raised as far as the changes need, 1 if not, 2 if a file cannot be
    read. With --fail-on, exits 1 if there is a change of that level or above.

    Example: cleats contract diff before.json after.json --format markdown
    """
    report = style.print_report(*load_pair(old, new), new)
    if fail_on is not None and report.filter_by_level(BumpLevel(fail_on)):
        sys.exit(1)
    if fail_on is None and not report.ok:
        sys.exit(1)


@contract.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="Read rules from this file.")
def changelog(old: Path, new: Path, *, config_path: Path | None) -> None:
    """Write the changes between two files as a changelog.

    The sections are Markdown: Breaking, Added and Changed.

    Example: cleats contract changelog before.json after.json
    """
    try:
        report = compare_bounded(*load_pair(old, new), load_config(config_path).build_policy())
    except SnapshotError as error:
        raise UnusableInput(str(error)) from None
    click.echo(render_changelog(report).encode(), nl=False)


@contract.command()
@with_server_options
@_path_option("--against", COMMITTED_SNAPSHOT_PATH, "Committed snapshot of Cleats or of the toolset.")
@click.option("--against-ref", metavar="REF", help="Compare with the file in this git commit, such as origin/main.")
@_path_option("--lock", LOCK_FILE_PATH, "Lock file of the server.")
@click.option(
    "--accept", "--update", is_flag=True, help="Write the file; for Cleats or a toolset, only with the right version."
)
@click.option(
    "--fail-on",
    type=click.Choice(LEVEL_NAMES),
    help="Fail if a server has a change of this level or above. [default: patch]",
)
@click.option(
    "--security",
    type=click.Choice(["fail", "warn"]),
    help="Fail or only warn on suspicious new text, independently of --fail-on. [default: fail]",
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
    fail_on: str | None,
    security: str | None,
    style: ReportStyle,
    config: ContractConfig,
) -> None:
    """Check that a contract changed only with its version.

    With --server or --url, compares an MCP server with its lock file. Every change fails the check,
    even of a description, because models act on descriptions. --fail-on major allows changes that break no
    client; suspicious new text still fails, unless you add --security warn. --update writes the lock file.

    Without --server and --url, compares Cleats, or an installed toolset (--toolset), with its committed
    file. The check fails if the file differs or if the version was not raised as far as the changes
    need. Changes are counted from the newest release in the folder `released` next to the file, or
    from the file if there is no release. --accept writes the file.

    If the current folder has a cleats-contract.toml, a check without --server, --url and --toolset
    compares everything that this file lists.

    Exits 0 if the check passes, 1 if it fails, 2 if it could not run.

    Examples:
      cleats contract check
      cleats contract check --against-ref origin/main --format markdown
      cleats contract check --toolset todo
      cleats contract check --server 'uvx mcp-server-git' --fail-on major
    """
    threshold = Threshold(BumpLevel(fail_on or config.fail_on), (security or config.security) == "fail")
    style = replace(style, fail_on=threshold.level)
    if server is not None:
        problem = _find_server_problem(server, lock, against_ref, threshold, style, accept=accept)
        if problem:
            _exit_with_problem(problem)
    elif config.has_subjects and toolset is None and not _names_own_contract():
        for name in (*([None] if config.own_contract else []), *config.toolsets):
            _check_own_contract(settings, name, against, against_ref, style, accept=accept)
        _check_configured_servers(settings, config, against_ref, threshold, style, accept=accept)
    else:
        reject_options("--server, --url or servers of a configuration", "fail_on", "security")
        _check_own_contract(settings, toolset, against, against_ref, style, accept=accept)


def _names_own_contract() -> bool:
    source = click.get_current_context().get_parameter_source("against")
    return source is ParameterSource.COMMANDLINE


def _check_configured_servers(
    settings: Settings,
    config: ContractConfig,
    ref: str | None,
    threshold: Threshold,
    style: ReportStyle,
    *,
    accept: bool,
) -> None:
    """Check every server of the configuration, and report all problems before failing."""
    problems = []
    for name, entry in config.servers.items():
        if style.shape == "text":
            click.echo(f"{name}:")
        policy = replace(style.policy, server=name)
        server_style, lock = replace(style, policy=policy), Path(entry.lock)
        server = entry.open_server(settings.grace)
        problem = _find_server_problem(server, lock, ref, threshold, server_style, accept=accept)
        problems += [f"{name}: {problem}"] if problem else []
    if problems:
        _exit_with_problem("; ".join(problems))


def _check_own_contract(
    settings: Settings, toolset: str | None, path: Path, ref: str | None, style: ReportStyle, *, accept: bool
) -> None:
    contract_files, current_snapshot = build_contract_files(settings, toolset, path)
    base_path = path if ref is not None else find_newest_release(path) or path
    if ref is not None or base_path.exists():
        base_snapshot = load_contract(base_path, ref)
        # Without a file of results, only what is listed can be compared.
        is_listed_only = base_path == path and ref is None and not path.with_name(RESULTS_NAME).exists()
        new_snapshot = json.loads(contract_files[path]) if is_listed_only else current_snapshot
        if not style.print_report(base_snapshot, new_snapshot, path).ok:
            sys.exit(1)
    elif not accept:
        raise UnusableInput(f"{path} does not exist; name the file with --against, or write it with --accept")
    for file_path, data in contract_files.items():
        if file_path.exists() and file_path.read_bytes() == data:
            continue
        if not accept:
            toolset_option = "" if toolset is None else f" --toolset {toolset}"
            accept_command = f"cleats contract check{toolset_option} --accept"
            _exit_with_problem(f"{file_path} differs from the current contract; run: {accept_command}")
        write_snapshot(file_path, json.loads(data))


@contract.command()
@click.option("--toolset", metavar="NAME", help="Name of an installed toolset.")
@_path_option(
    "--against", COMMITTED_SNAPSHOT_PATH, "Committed snapshot; the releases are in the folder `released` beside it."
)
@click.option(
    "--replace", "is_replacement", is_flag=True, help="Record this version again; only if nobody uses it yet."
)
@with_style_options
@click.pass_obj
def release(
    settings: Settings,
    *,
    toolset: str | None,
    against: Path,
    is_replacement: bool,
    style: ReportStyle,
    config: ContractConfig,  # noqa: ARG001 - it is read for its rules
) -> None:
    """Record the current contract as released under its version.

    `cleats contract check` counts later changes from this release and fails if they do not raise
    the version far enough.

    Exits 0 if the release was recorded, 1 if its version is too low for its changes, 2 if the
    command could not run.

    Examples:
      cleats contract release
      cleats contract release --replace
    """
    _, current_snapshot = build_contract_files(settings, toolset, against)
    release_path = against.parent / RELEASED_NAME / f"{current_snapshot['schemaVersion']}.json"
    previous_path = find_newest_release(against, without=release_path)
    previous_snapshot = current_snapshot if previous_path is None else load_snapshot(previous_path)
    if not style.print_report(previous_snapshot, current_snapshot, release_path).ok:
        sys.exit(1)
    if release_path.exists() and not is_replacement and release_path.read_bytes() != encode_snapshot(current_snapshot):
        _exit_with_problem(
            f"{release_path} records another contract; raise the version, or replace the file with --replace"
        )
    write_snapshot(release_path, current_snapshot)


def _find_server_problem(
    server: ContractServer, path: Path, ref: str | None, threshold: Threshold, style: ReportStyle, *, accept: bool
) -> str:
    """Compare a server with its lock file; return what is wrong, or empty text."""
    current_snapshot = server.take_snapshot()
    if ref is None and not path.exists():
        if not accept:
            raise UnusableInput(f"{path} does not exist; write it with --update")
        write_snapshot(path, current_snapshot)
        return ""
    base_snapshot = load_snapshot(path) if ref is None else load_snapshot_at_ref(ref, path)
    report = style.print_report(base_snapshot, current_snapshot, path)
    if accept:
        write_snapshot(path, current_snapshot)
        return ""
    problem_count = threshold.count_problems(report)
    changes = f"{problem_count} change{'s' if problem_count > 1 else ''}"
    return f"the server differs from {path} ({changes}); run the check with --update to accept" if problem_count else ""


@contract.command()
@click.argument("rule", callback=check_rule_names, shell_complete=completion.make_completer(lambda: RULES))
def explain(rule: str) -> None:
    """Explain a rule, with an example and what to do.

    Example: cleats contract explain INPUT_NARROWED
    """
    click.echo(explain_rule(RULES[rule]))


@contract.command()
def rules() -> None:
    """List the rules and the version bump that each of them needs.

    Example: cleats contract rules
    """
    rows = [
        (listed_rule.level.value, "+1" if listed_rule.integer else "", listed_rule.id, listed_rule.purpose)
        for listed_rule in RULES.values()
    ]
    click.echo(format_columns(rows, indent=""))
    click.echo("\n+1: the schemaVersion of the tool must be raised too.")


# Reporting


def _exit_with_problem(text: str) -> NoReturn:
    click.echo(f"Error: {text}", err=True)
    sys.exit(1)
