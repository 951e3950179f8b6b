"""The `cleats index` command: build an index, update it, and report its contents."""

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleats.cli import output, tool_command
from cleats.cli.output import (
    echo_json,
    format_bytes,
    format_columns,
    format_count,
    is_json_requested,
    shorten_home,
    style_heading,
)
from cleats.cli.tool_command import exit_with_error, json_command, mode_choice, path_argument
from cleats.contract.errors import ToolError
from cleats.settings import Settings

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from cleats.toolsets.code.index.progress import BuildReport

RECORDS_LANGUAGE = "records"
"""The language under which an index counts findings and decisions among its files."""

_FOLDER_TYPE = click.Path(exists=True, file_okay=False, resolve_path=True)
_MODE_HELP = "What to index; other content of an existing index is updated too."

MAX_SUMMARY_ITEMS = 8
"""The most languages and problems that a summary lists."""


class DefaultBuildGroup(click.Group):
    """A group that runs `build` when no subcommand is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and (not args or args[0] in self.commands):
            return super().parse_args(ctx, args)  # a shell asks what could come next
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            close_matches = get_close_matches(args[0], self.commands, n=1) if args else []
            if close_matches and not ctx.resilient_parsing and not Path(args[0]).exists():
                suggestion = f"{ctx.command_path} {close_matches[0]}"
                ctx.fail(f"The folder {args[0]!r} does not exist. Did you mean '{suggestion}'?")
            args = ["build", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete words, or folders if no word matches: shells drop words when they are asked to list folders."""
        build = self.commands["build"]
        with build.make_context("build", [], parent=ctx, resilient_parsing=True) as build_context:
            completions = super().shell_complete(ctx, incomplete)
            completions += build.shell_complete(build_context, incomplete)
        return completions or tool_command.complete_folders(ctx, build.params[0], incomplete)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of `build`, because the group accepts them directly."""
        self.commands["build"].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return ["[OPTIONS] [PATH]"]


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause garbage collection during a build: its objects are in use until the process ends."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # otherwise Python would scan all objects now, and again at exit
        gc.enable()


@click.group(cls=DefaultBuildGroup)
def index() -> None:
    """Index the repository that contains PATH or the current folder.

    An existing index is updated: only changed files are read. Searches use the previous index until the new
    one is complete, and Ctrl-C keeps the previous one.

    Every file is indexed unless .gitignore or .cleatsignore excludes it, or it is too large or not text.
    `cleats index status --skipped` lists the skipped files with the reason.

    Examples:
      cleats index                   build or update the index of this repository
      cleats index ~/src/app --full  read every file again
      cleats index --mode prose      only documents, comments and docstrings
      cleats index status            content and freshness of the index

    Exits 0  if the index is complete and up to date,
          1  if it could not be built; the previous index remains,
          2  if the folder does not exist.
    """


@index.command()
@path_argument
@click.option("--mode", type=mode_choice, default="all", show_default=True, help=_MODE_HELP)
@click.option(
    "--incremental/--full", default=True, help="Read only changed files, or all files. [default: incremental]"
)
@click.option("--sqlite/--no-sqlite", default=None, help="Create or drop the SQLite full-text index.")
@click.option("--vectors/--no-vectors", default=None, help="Include or omit search by meaning.")
@click.option("--from", "artifacts", type=_FOLDER_TYPE, help="Start from an index written by `cleats index export`.")
@click.option("--workers", type=click.IntRange(0), help="Number of processes; 0 means one per core.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@json_command
def build(settings: Settings, /, path: str | None, *, mode: Any, quiet: bool, **option_values: Any) -> None:
    """Build or update the index (the same as `cleats index`).

    Examples:
      cleats index build
      cleats index build ~/src/app --full --sqlite
    """
    import msgspec  # noqa: PLC0415 - help needs none of these

    from cleats.toolsets.code.composition import open_indexes  # noqa: PLC0415
    from cleats.toolsets.code.index.build import build_index  # noqa: PLC0415
    from cleats.toolsets.code.index.options import expand_mode  # noqa: PLC0415

    indexes = open_indexes(settings)
    overrides = {name: value for name, value in option_values.items() if value is not None}
    options = msgspec.structs.replace(indexes.options, modes=expand_mode(mode), **overrides)
    try:
        repository = indexes.find_repository(path)
        records_warning = indexes.records.update(repository)
        with pause_garbage_collection(), output.ProgressPrinter(outside_terminal=False, quiet=quiet) as bar:
            report = build_index(repository.root, indexes.open_store(repository), options, bar.show_build)
        report.warnings += [records_warning] if records_warning else []
    except ToolError as error:
        exit_with_error(error)
    except KeyboardInterrupt:
        click.echo("Cancelled; the index is as it was.", err=True)
        sys.exit(output.INTERRUPTED_EXIT_CODE)
    if is_json_requested():
        echo_json({"repoPath": str(repository.root), **msgspec.to_builtins(report)})
    elif not quiet:
        click.echo(_render_summary(shorten_home(repository.root), report))
    for warning in report.warnings:
        click.echo(f"Note: {warning}", err=True)


@index.command()
@click.argument("folder", type=click.Path(file_okay=False, resolve_path=True))
@path_argument
@click.pass_obj
def export(settings: Settings, folder: str, path: str | None) -> None:
    """Write the index to a new FOLDER, for use on another machine.

    There, `cleats index --from FOLDER` starts from it and reads only the files that differ.

    Examples:
      cleats index export ../app-index
      cleats index --from ../app-index    on the other machine
    """
    from cleats.toolsets.code.composition import open_indexes  # noqa: PLC0415
    from cleats.toolsets.code.index import portable  # noqa: PLC0415

    indexes = open_indexes(settings)
    try:
        with indexes.lease_index(indexes.find_repository(path)) as lease:
            count = portable.export_generation(lease, Path(folder))
    except ToolError as error:
        exit_with_error(error)
    except OSError as error:
        raise click.ClickException(f"{folder}: {error.strerror}") from None
    click.echo(f"{folder}: {format_count(count, 'file')} of {lease.name}.")


@index.command()
@path_argument
@click.option("--skipped", is_flag=True, help="List skipped files and the reason.")
@json_command
def status(settings: Settings, path: str | None, *, skipped: bool) -> None:
    """Show the content, location and freshness of the index.

    Examples:
      cleats index status
      cleats index status ~/src/app --skipped
      cleats index status --json | jq .freshness

    Exits 0  if there is an up-to-date index,
          1  if the index is stale or missing,
          2  if the folder does not exist.
    """
    import anyio  # noqa: PLC0415

    from cleats.toolsets.code.composition import open_indexes  # noqa: PLC0415
    from cleats.toolsets.code.index.background_builds import BackgroundBuilds  # noqa: PLC0415
    from cleats.toolsets.code.index.tool import IndexTools  # noqa: PLC0415

    indexes = open_indexes(settings)
    try:
        repository = indexes.find_repository(path)
    except ToolError as error:
        exit_with_error(error)
    answer = anyio.run(IndexTools(indexes, BackgroundBuilds(indexes, is_enabled=False)).describe_index, repository)
    if is_json_requested():
        echo_json(answer)
    elif not answer["index"]["exists"]:
        old = " that this version can read" if answer["index"]["outdated"] else ""
        click.echo(f"{repository.root} has no index{old}. Run `cleats index` to build one.")
    elif skipped:
        rows = [(file["reason"], file["path"], file["detail"]) for file in answer["index"]["skipped"]]
        table = format_columns([("WHY", "WHAT", ""), *rows], indent="", cut=True)
        click.echo(table if rows else "No files were skipped, except those that ignore files exclude.")
    else:
        click.echo(_render_status(answer))
        if warning := answer["git"].get("warning"):
            click.echo(f"Note: {warning}", err=True)
    freshness = answer["freshness"]
    sys.exit(1 if freshness is None or freshness["stale"] else 0)


def _render_summary(root: str, report: "BuildReport") -> str:
    files = report.files
    records = report.languages.get(RECORDS_LANGUAGE, 0)
    total = sum(report.chunks.values())
    if not files.total:
        skipped_line = f"\n  left out  {_format_counts(report.skipped_reasons)}" if report.skipped_reasons else ""
        return f"Nothing to index in {style_heading(root)}.{skipped_line}"
    if not report.published:
        return f"{root} is up to date: {_format_amounts(files.total, records, total)}."
    verbs = ((files.added, "new"), (files.changed, "changed"), (files.removed, "removed"))
    changes = ", ".join(f"{count:,} {verb}" for count, verb in verbs if count) or "none changed"
    amount = _format_amounts(files.total, records, total, f" ({changes})")
    lines = [
        f"{style_heading(root)} indexed in {report.seconds:.1f} s: {amount}.",
        format_columns(_content_rows(report.languages, report.chunks, report.skipped_reasons)),
    ]
    if report.problem_count:
        lines.append(f"Parsed only in part: {format_count(report.problem_count, 'file')}:")
        lines += [f"  {problem.path}: {problem.problem}" for problem in report.problems[:MAX_SUMMARY_ITEMS]]
        if report.problem_count > MAX_SUMMARY_ITEMS:
            lines.append(f"  ... and {report.problem_count - MAX_SUMMARY_ITEMS:,} more")
    return "\n".join(lines)


def _format_amounts(total: int, records: int, chunks: int, changes: str = "") -> str:
    records_text = f" and {format_count(records, 'record')}" if records else ""
    return f"{format_count(total - records, 'file')}{records_text}{changes}, {format_count(chunks, 'chunk')}"


def _content_rows(
    languages: Mapping[str, int], chunks: Mapping[str, int], skipped: Mapping[str, int]
) -> list[tuple[str, str]]:
    files = {name: count for name, count in languages.items() if name != RECORDS_LANGUAGE}
    rows = [("files", _format_counts(files))]
    if RECORDS_LANGUAGE in languages:
        rows.append(("records", f"{languages[RECORDS_LANGUAGE]:,} of `cleats triage`"))
    rows.append(("chunks", _format_counts(chunks)))
    if skipped:
        rows.append(("left out", _format_counts(skipped)))
    return rows


def _format_counts(counts: Mapping[str, int]) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{count:,} {name}" for name, count in ranked[:MAX_SUMMARY_ITEMS]]
    rest = sum(count for _, count in ranked[MAX_SUMMARY_ITEMS:])
    return ", ".join([*parts, f"{rest:,} others"] if rest else parts) or "none"


def _render_status(answer: Mapping[str, Any]) -> str:
    index_facts = answer["index"]
    rows = [
        ("index", f"{index_facts['path']}  ({format_bytes(index_facts['bytes'])})"),
        ("built", f"{index_facts['builtAt'][:19].replace('T', ' ')} UTC by cleats {index_facts['tool']}"),
        ("source", _describe_commit(index_facts)),
        ("state", _describe_freshness(answer)),
        ("vectors", "yes" if answer["vectors"]["available"] else "no"),
        ("sqlite", format_bytes(answer["sqlite"]["bytes"]) if answer["sqlite"]["exists"] else "no"),
        *_content_rows(index_facts["languages"], index_facts["chunks"], index_facts["skippedReasons"]),
    ]
    lines = [style_heading(answer["repoPath"]), format_columns(rows)]
    if index_facts["problemCount"]:
        lines.append(f"  parsed only in part: {format_count(index_facts['problemCount'], 'file')}")
    return "\n".join(lines)


def _describe_commit(index_facts: Mapping[str, Any]) -> str:
    if index_facts["commit"] is None:
        return "files without git"
    branch = index_facts["branch"] or "no branch"
    return f"{index_facts['commit'][:12]} ({branch}{', with changes' if index_facts['dirty'] else ''})"


def _describe_freshness(answer: Mapping[str, Any]) -> str:
    freshness = answer["freshness"]
    if not freshness["stale"]:
        return "up to date"
    reasons = [f"{freshness[key]:,} {key}" for key in ("added", "changed", "removed") if freshness[key]]
    if freshness["headMoved"]:
        changed_part = "branch" if answer["git"]["head"] == answer["index"]["commit"] else "commit"
        is_under_git = answer["git"]["isRepo"]
        reasons.append(f"another {changed_part} is checked out" if is_under_git else "no longer under git")
    reasons += ["built by another version of Cleats or with other settings"] * freshness["outgrown"]
    # The only remaining reason is one for which the answer has no field.
    why = ", ".join(reasons) or "git has another part of the history"
    return f"stale: {why}; run `cleats index` to update it"
