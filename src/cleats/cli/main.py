"""The `cleats` command. Each subcommand is imported when it is used, so that help is instant."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import click

from cleats.cli.config import load
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.settings import SettingError


class Entry(NamedTuple):
    """Where a command lives and what the overview says of it."""

    module: str
    about: str
    settings: bool = True
    """Whether it gets them; the others must work when a setting is wrong."""


COMMANDS: Mapping[str, Entry] = {
    "serve": Entry("cleats.cli.serve", "Serve toolsets to an agent over stdio."),
    "http": Entry("cleats.cli.http", "Serve toolsets over HTTP: REST, streams and MCP."),
    "worker": Entry("cleats.cli.worker", "Work for a fleet: drive runs, publish an index."),
    "token": Entry("cleats.cli.token", "Make a token for a caller of the HTTP API."),
    "tools": Entry("cleats.cli.tools", "Show the tools this server has."),
    "call": Entry("cleats.cli.call", "Call one tool and print its answer."),
    "index": Entry("cleats.cli.index", "Index a repository, so that it can be searched."),
    "search": Entry("cleats.cli.search", "Find code, documents and comments in an index."),
    "show": Entry("cleats.cli.show", "Show lines of a file, and what the index has there."),
    "artifacts": Entry("cleats.cli.artifacts", "Say what the indexes of this machine cost."),
    "cache": Entry("cleats.cli.cache", "Make the cache of indexes smaller, or remove indexes."),
    "download": Entry("cleats.cli.download", "Fetch word lists and extensions, and try them."),
    "sqlite": Entry("cleats.cli.sqlite", "Make the SQLite index of a repository, or pack it."),
    "bootstrap": Entry("cleats.cli.bootstrap", "Make a fresh checkout searchable, step by step."),
    "workspace": Entry("cleats.cli.workspace", "Show the repositories that a file names."),
    "config": Entry("cleats.cli.configuration", "Show the settings and what they lead to."),
    "triage": Entry("cleats.cli.triage", "Keep findings of scanners, and decide about them."),
    "skills": Entry("cleats.cli.skills", "List, find, check, switch and write skills."),
    "assets": Entry("cleats.cli.assets", "Validate, compare and publish assets."),
    "launch": Entry("cleats.cli.launch", "Write, check and publish the pages of a product."),
    "contract": Entry("cleats.cli.contract", "Snapshot, compare and check tool contracts."),
    "doctor": Entry(
        "cleats.cli.doctor",
        "Say what is installed, what is missing, how to get it.",
        settings=False,
    ),
    "client-config": Entry(
        "cleats.cli.clients", "Print the block that registers this server.", settings=False
    ),
}


UNUSABLE = 2
"""The exit code of a command that was asked wrongly, as click has it."""


class Unusable(click.ClickException):
    """The settings, or what they point at, do not let a command begin."""

    exit_code = UNUSABLE


_JSON = "cleats.json"


def wants_json(words: Sequence[str]) -> bool:
    """Whether a program will read the answer, also of a command whose words cannot be parsed."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def say_as_json(message: str, *, asked_wrongly: bool) -> None:
    """Print a failure as the tools have theirs, so that a program need not read stderr."""
    from cleats.cli.printing import echo_json  # noqa: PLC0415 - only failures need them
    from cleats.contract.errors import ErrorCode, ToolError  # noqa: PLC0415

    code = ErrorCode.INVALID_REQUEST if asked_wrongly else ErrorCode.INTERNAL
    echo_json({"ok": False, "error": ToolError(code, message).as_json()})


CLOSED, INTERRUPTED = 141, 130
"""What a shell says of a program whose reader went away, and of one that Ctrl-C ended."""


@contextmanager
def _leaving_quietly() -> Iterator[None]:
    """End without a word when nobody reads on, as in `| head`, or when Ctrl-C is pressed."""
    try:
        yield
    except (BrokenPipeError, ExceptionGroup) as error:  # a task group wraps what its tasks raise
        if isinstance(error, ExceptionGroup) and error.split(BrokenPipeError)[1]:
            raise
        # What is left in its buffer would be written, and fail, once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


@contextmanager
def _refusing(*, as_json: bool) -> Iterator[None]:
    """Leave what click is to say to click, unless a program asked."""
    try:
        yield
    except (SettingError, click.ClickException) as error:
        refusal = error if isinstance(error, click.ClickException) else Unusable(str(error))
        if not as_json:
            raise refusal from None
        say_as_json(refusal.format_message(), asked_wrongly=refusal.exit_code == UNUSABLE)
        sys.exit(refusal.exit_code)


class Commands(click.Group):
    """A group that knows its commands by name before it imports them."""

    def make_context(
        self, info_name: str | None, args: list[str], *rest: Any, **extra: Any
    ) -> click.Context:
        as_json = wants_json(args)
        with _leaving_quietly(), _refusing(as_json=as_json):  # help is printed here
            context = super().make_context(info_name, args, *rest, **extra)
        context.meta[_JSON] = as_json
        return context

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        entry = COMMANDS.get(name)
        if entry is None:
            return None
        module = import_module(entry.module)
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.params.get("validate"):
            ctx.fail(_ONE_PATH)
        if ctx.resilient_parsing:  # a shell asks what could come next
            return super().resolve_command(ctx, args)
        if args[0] not in COMMANDS and (near := get_close_matches(args[0], COMMANDS, n=1)):
            ctx.fail(f"There is no command {args[0]!r}; did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _leaving_quietly(), _refusing(as_json=ctx.meta[_JSON]):
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.about) for name, entry in COMMANDS.items()])


_ONE_PATH = "--validate takes one PATH and nothing else; `cleats assets validate` takes many."


@click.group(
    cls=Commands,
    invoke_without_command=True,
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(
    TOOLING_VERSION, message=f"cleats {TOOLING_VERSION} (contract {SCHEMA_VERSION})"
)
@click.option(
    "--validate",
    metavar="PATH",
    multiple=True,
    help="Check one asset, print one line of JSON, and exit 0, 1 or 2.",
)
@click.pass_context
def cli(ctx: click.Context, validate: Sequence[str]) -> None:
    """The tool server for coding agents.

    \b
    Try it:        cleats index && cleats search "where are errors handled?"
    See the tools: cleats tools
    Register it:   cleats client-config claude-code
    Set it up:     cleats doctor

    Settings come from the environment (CLEATS_*), .cleats.toml in the repository and your own
    configuration file; `cleats COMMAND --help` explains each command.

    A command exits 141 when nobody reads its output any more, as in `| head`, and 130 when Ctrl-C
    stopped it, unless its help says otherwise.
    """  # noqa: D301 - click reads the backspace
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    if ctx.invoked_subcommand is None:
        ctx.exit(_validate(ctx, validate))
    if COMMANDS[ctx.invoked_subcommand].settings:
        ctx.obj = load(os.environ)


def _validate(ctx: click.Context, paths: Sequence[str]) -> int:
    from cleats.cli.assets import validate_file  # noqa: PLC0415 - help needs none of it

    if not paths:
        ctx.fail("Missing command.")
    if len(paths) > 1:
        ctx.fail(_ONE_PATH)
    return validate_file(load(os.environ), paths[0])


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        sys.exit(cli.main(prog_name="cleats", standalone_mode=True))
    except Exception as error:
        if os.environ.get("CLEATS_LOG_LEVEL") == "debug":
            raise
        cause: Exception = error
        while isinstance(cause, ExceptionGroup):  # a task group's wrapping says nothing
            cause = cause.exceptions[0]
        if wants_json(sys.argv):
            say_as_json(f"{type(cause).__name__}: {cause}", asked_wrongly=False)
        click.echo(f"Error: {type(cause).__name__}: {cause}", err=True)
        click.echo("`cleats doctor` may know why; CLEATS_LOG_LEVEL=debug shows where.", err=True)
        sys.exit(UNUSABLE)


if __name__ == "__main__":
    main()
