"""`cleats index`: make an index, bring it up to date, and say what is in it."""

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleats.cli import completing
from cleats.cli.asking import INTERRUPTED, fail, json_option, path_argument
from cleats.cli.printing import clip, columns, counted, echo_json, heading, size, width
from cleats.contract.errors import ToolError
from cleats.settings import Settings

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from cleats.toolsets.code.indexing.progress import Progress
    from cleats.toolsets.code.indexing.report import BuildReport

RECORDS = "records"
"""What an index calls the findings and decisions among its files."""

SHOWN = 8
"""Languages and problems that fit a summary."""


class Default(click.Group):
    """A group that builds when no command of it is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and (not args or args[0] in self.commands):
            return super().parse_args(ctx, args)  # a shell asks what could come next
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            near = get_close_matches(args[0], self.commands, n=1) if args else []
            if near and not ctx.resilient_parsing and not Path(args[0]).exists():
                meant = f"{ctx.command_path} {near[0]}"
                ctx.fail(f"There is no folder {args[0]!r}; did you mean '{meant}'?")
            args = ["build", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The commands and the options of `build`, or folders when none begins so.

        Never both: shells forget the words when they are told to list folders.
        """
        build = self.commands["build"]
        with build.make_context("build", [], parent=ctx, resilient_parsing=True) as building:
            words = super().shell_complete(ctx, incomplete)
            words += build.shell_complete(building, incomplete)
        return words or completing.listed("dir", incomplete)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What can be given right away are the options of `build`."""
        build = self.commands["build"]
        build.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return ["[OPTIONS] [PATH]"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Never look for garbage in what a build makes: it is in use, and then the process ends."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # else Python looks through all of it now, and once more before it ends
        gc.enable()


@click.group(cls=Default)
def index() -> None:
    """Index the repository around PATH, or around the current folder.

    An index that is there is brought up to date: only files that have changed are read, and
    nothing is written when none has. Searches go on with the earlier index until the new one is
    whole, and Ctrl-C leaves it as it was.

    Indexed are the files that git tracks or would track, or all below a folder without git, as
    far as no .gitignore and no .cleatsignore excludes them. `cleats index status` says what was
    left out, and why.

    \b
    Examples:
      cleats index                   the repository here, up to date
      cleats index ~/src/app --full  all of it again
      cleats index --mode prose      only documents, comments and docstrings
      cleats index status            what is in the index, and how fresh it is

    \b
    Exits 0  when the index is whole and up to date,
          1  when it could not be built; the earlier one still answers,
          2  when there is no such folder.
    """  # noqa: D301 - click reads the backspace


@index.command()
@path_argument
@click.option(
    "--mode",
    type=click.Choice(["all", "code", "prose", "extracted-prose", "records"]),
    default="all",
    show_default=True,
    help="What to index. What the index has besides is kept up to date too.",
)
@click.option(
    "--incremental/--full",
    default=True,
    help="Read only what has changed, as by default, or everything again.",
)
@click.option(
    "--sqlite/--no-sqlite", default=None, help="Make, or drop, the SQLite full-text index."
)
@click.option("--vectors/--no-vectors", default=None, help="With or without search by meaning.")
@click.option(
    "--from",
    "artifacts",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Begin from an index that `cleats index export` wrote.",
)
@click.option("--workers", type=click.IntRange(0), help="Processes that read; 0 for one per core.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@json_option
@click.pass_obj
def build(
    settings: Settings, /, path: str | None, *, mode: Any, quiet: bool, as_json: bool, **given: Any
) -> None:
    """Build or update the index; the same as without `build`.

    \b
    Examples:
      cleats index build
      cleats index build ~/src/app --full --sqlite
    """  # noqa: D301 - click reads the backspace
    import msgspec  # noqa: PLC0415 - help needs none of these

    from cleats.toolsets.code.indexing.access import Indexes  # noqa: PLC0415
    from cleats.toolsets.code.indexing.options import chosen  # noqa: PLC0415
    from cleats.toolsets.code.indexing.run import build as run  # noqa: PLC0415

    indexes = Indexes(settings)
    named = {name: value for name, value in given.items() if value is not None}
    options = msgspec.structs.replace(indexes.options, modes=chosen(mode), **named)
    bar = Bar(quiet=quiet)
    try:
        repository = indexes.repository(path)
        late = indexes.catch_up(repository)
        with uncollected():
            done = run(repository.root, indexes.shelf(repository), options, bar.show)
        done.warnings += [late] if late else []
    except ToolError as error:
        bar.clear()
        fail(error)
    except KeyboardInterrupt:
        bar.clear()
        click.echo("Cancelled; the index is as it was.", err=True)
        sys.exit(INTERRUPTED)
    bar.clear()
    if as_json:
        echo_json({"repoPath": str(repository.root), **msgspec.to_builtins(done)})
    elif not quiet:
        click.echo(_summary(str(repository.root), done))
    for warning in done.warnings:
        click.echo(f"Note: {warning}", err=True)


@index.command()
@click.argument("folder", type=click.Path(file_okay=False, resolve_path=True))
@path_argument
@click.pass_obj
def export(settings: Settings, folder: str, path: str | None) -> None:
    """Write the index to a new FOLDER, to be carried to another machine.

    There, `cleats index --from FOLDER` begins with it and reads only what differs.

    \b
    Examples:
      cleats index export ../app-index
      cleats index --from ../app-index    on the other machine
    """  # noqa: D301 - click reads the backspace
    from cleats.toolsets.code.indexing import artifacts  # noqa: PLC0415
    from cleats.toolsets.code.indexing.access import Indexes  # noqa: PLC0415

    indexes = Indexes(settings)
    try:
        with indexes.lease(indexes.repository(path)) as lease:
            count = artifacts.export(lease, Path(folder))
    except ToolError as error:
        fail(error)
    except OSError as error:
        raise click.ClickException(f"{folder}: {error.strerror}") from None
    click.echo(f"{folder}: {counted(count, 'file')} of {lease.name}.")


@index.command()
@path_argument
@click.option("--skipped", is_flag=True, help="List what was left out, and why.")
@json_option
@click.pass_obj
def status(settings: Settings, path: str | None, *, skipped: bool, as_json: bool) -> None:
    """Say what is in the index, where it is and how fresh it is.

    \b
    Examples:
      cleats index status
      cleats index status ~/src/app --skipped
      cleats index status --json | jq .freshness

    \b
    Exits 0  when there is an index and it is up to date,
          1  when it is not, or there is none,
          2  when there is no such folder.
    """  # noqa: D301
    import anyio  # noqa: PLC0415

    from cleats.toolsets.code.indexing.access import Indexes  # noqa: PLC0415
    from cleats.toolsets.code.indexing.tool import IndexTools  # noqa: PLC0415

    indexes = Indexes(settings)
    try:
        repository = indexes.repository(path)
    except ToolError as error:
        fail(error)
    found = anyio.run(IndexTools(indexes).describe, repository)
    if as_json:
        echo_json(found)
    elif not found["index"]["exists"]:
        old = " that this version can read" if found["index"]["outdated"] else ""
        click.echo(f"{repository.root} has no index{old}. `cleats index` makes one.")
    elif skipped:
        rows = [
            (each["reason"], each["path"], each["detail"]) for each in found["index"]["skipped"]
        ]
        table = columns([("WHY", "WHAT", ""), *rows], indent="", cut=True)
        click.echo(table if rows else "Nothing was left out but what ignore files exclude.")
    else:
        click.echo(_state(found))
        if warning := found["git"].get("warning"):
            click.echo(f"Note: {warning}", err=True)
    fresh = found["freshness"]
    sys.exit(1 if fresh is None or fresh["stale"] else 0)


class Bar:
    """Progress on stderr: one line that changes, and nothing at all outside a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._stream = sys.stderr
        self._live = self._stream.isatty() and not quiet
        self._shown = False

    def show(self, at: "Progress") -> None:
        """Draw how far it is."""
        if not self._live:
            return
        drawn = f"{self._drawn(at.done / at.total)} " if at.total else ""
        line = clip(f"{drawn}{at.message}", width() - 1)
        self._stream.write("\r" + line.ljust(width() - 1))
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Leave no trace of it."""
        if self._shown:
            self._stream.write("\r" + " " * (width() - 1) + "\r")
            self._stream.flush()

    def _drawn(self, share: float) -> str:
        full = round(20 * share)
        return f"[{'#' * full}{'.' * (20 - full)}] {share:4.0%}"


def _summary(root: str, done: "BuildReport") -> str:
    files = done.files
    records = done.languages.get(RECORDS, 0)
    total = sum(done.chunks.values())
    if not files.total:
        left = f"\n  left out  {_counted(done.skipped_reasons)}" if done.skipped_reasons else ""
        return f"There is nothing to index in {heading(root)}.{left}"
    if not done.published:
        return f"{root} is up to date: {_amount(files.total, records, total)}."
    verbs = ((files.added, "new"), (files.changed, "changed"), (files.removed, "removed"))
    changes = ", ".join(f"{count:,} {verb}" for count, verb in verbs if count) or "none changed"
    amount = _amount(files.total, records, total, f" ({changes})")
    lines = [
        f"{heading(root)} indexed in {done.seconds:.1f} s: {amount}.",
        columns(_contents(done.languages, done.chunks, done.skipped_reasons)),
    ]
    if done.problem_count:
        lines.append(f"Understood only in part: {counted(done.problem_count, 'file')}:")
        lines += [f"  {each.path}: {each.problem}" for each in done.problems[:SHOWN]]
        if done.problem_count > SHOWN:
            lines.append(f"  ... and {done.problem_count - SHOWN:,} more")
    return "\n".join(lines)


def _amount(whole: int, records: int, pieces: int, changes: str = "") -> str:
    kept = f" and {counted(records, 'record')}" if records else ""
    return f"{counted(whole - records, 'file')}{kept}{changes}, {counted(pieces, 'piece')}"


def _contents(
    languages: Mapping[str, int], chunks: Mapping[str, int], skipped: Mapping[str, int]
) -> list[tuple[str, str]]:
    files = {name: count for name, count in languages.items() if name != RECORDS}
    rows = [("files", _counted(files))]
    if RECORDS in languages:
        rows.append(("records", f"{languages[RECORDS]:,} of `cleats triage`"))
    rows.append(("pieces", _counted(chunks)))
    if skipped:
        rows.append(("left out", _counted(skipped)))
    return rows


def _counted(counts: Mapping[str, int]) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    said = [f"{count:,} {name}" for name, count in ranked[:SHOWN]]
    rest = sum(count for _, count in ranked[SHOWN:])
    return ", ".join([*said, f"{rest:,} others"] if rest else said) or "none"


def _state(found: Mapping[str, Any]) -> str:
    held = found["index"]
    rows = [
        ("index", f"{held['path']}  ({size(held['bytes'])})"),
        ("built", f"{held['builtAt'][:19].replace('T', ' ')} UTC by cleats {held['tool']}"),
        ("of", _of(held)),
        ("state", _freshness(found)),
        ("vectors", "yes" if found["vectors"]["available"] else "no"),
        ("sqlite", size(found["sqlite"]["bytes"]) if found["sqlite"]["exists"] else "no"),
        *_contents(held["languages"], held["chunks"], held["skippedReasons"]),
    ]
    lines = [heading(found["repoPath"]), columns(rows)]
    if held["problemCount"]:
        lines.append(f"  understood only in part: {counted(held['problemCount'], 'file')}")
    return "\n".join(lines)


def _of(held: Mapping[str, Any]) -> str:
    if held["commit"] is None:
        return "files without git"
    branch = held["branch"] or "no branch"
    return f"{held['commit'][:12]} ({branch}{', with changes' if held['dirty'] else ''})"


def _moved(git: Mapping[str, Any], held: Mapping[str, Any]) -> str:
    if not git["isRepo"]:
        return "no longer under git"
    what = "branch" if git["head"] == held["commit"] else "commit"
    return f"another {what} is checked out"


def _freshness(found: Mapping[str, Any]) -> str:
    fresh = found["freshness"]
    if not fresh["stale"]:
        return "up to date"
    words = [f"{fresh[key]:,} {key}" for key in ("added", "changed", "removed") if fresh[key]]
    words += [_moved(found["git"], found["index"])] * fresh["headMoved"]
    words += ["built by another version of Cleats or with other settings"] * fresh["outgrown"]
    # The last reason there is, and the one that the answer has no field for.
    words = words or ["git has another part of the history"]
    return f"stale: {', '.join(words)}; `cleats index` brings it up to date"
