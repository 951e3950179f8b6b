"""The `cleats` command. Each subcommand is imported when it is used, so that help is instant."""

import inspect
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cleats.cli.output import choose_color
from cleats.cli.settings_loader import describe_unknown_variables, load_settings
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.settings import SettingError, Settings

if TYPE_CHECKING:
    from cleats.contract.errors import ToolError


class CommandEntry(NamedTuple):
    """The module of a command and its description in the overview."""

    module: str
    about: str


COMMANDS_BY_NAME: Mapping[str, CommandEntry] = {
    "serve": CommandEntry("cleats.cli.serve", "Serve toolsets to an agent over stdio."),
    "http": CommandEntry("cleats.cli.serve", "Serve toolsets over HTTP, with a console for people."),
    "worker": CommandEntry("cleats.cli.serve", "Execute launch runs or publish an index for a fleet."),
    "token": CommandEntry("cleats.cli.serve", "Create tokens for the HTTP API."),
    "tools": CommandEntry("cleats.cli.tools", "List the tools, or explain one."),
    "call": CommandEntry("cleats.cli.call", "Call one tool and print its answer."),
    "find": CommandEntry("cleats.cli.explore", "Find code by what it does, by name or by message."),
    "grep": CommandEntry("cleats.cli.explore", "Find every line with a text, each with its function."),
    "symbol": CommandEntry("cleats.cli.explore", "Show the source of a function or class."),
    "references": CommandEntry("cleats.cli.explore", "Show where a symbol is used, or what it calls."),
    "outline": CommandEntry("cleats.cli.explore", "List the declarations of a file, or map a folder."),
    "index": CommandEntry("cleats.cli.index", "Index a repository, so that it can be searched."),
    "search": CommandEntry("cleats.cli.search", "Find code, documents and comments in an index."),
    "show": CommandEntry("cleats.cli.repository", "Show a file or some of its lines."),
    "artifacts": CommandEntry("cleats.cli.cache", "Show the disk usage of indexes."),
    "cache": CommandEntry("cleats.cli.cache", "Shrink the cache of indexes, or remove indexes."),
    "download": CommandEntry("cleats.cli.cache", "Download and test word lists and extensions."),
    "sqlite": CommandEntry("cleats.cli.repository", "Build or compact the SQLite index of a repository."),
    "bootstrap": CommandEntry("cleats.cli.repository", "Prepare a fresh checkout for search, step by step."),
    "workspace": CommandEntry("cleats.cli.repository", "Show the repositories of a workspace file."),
    "config": CommandEntry("cleats.cli.repository", "Show the settings and the paths in use."),
    "triage": CommandEntry("cleats.cli.triage", "Store findings of scanners and decisions about them."),
    "skills": CommandEntry("cleats.cli.skills", "List, search, validate, enable and create skills."),
    "assets": CommandEntry("cleats.cli.assets", "Validate, compare and publish assets."),
    "launch": CommandEntry("cleats.cli.launch.commands", "Write, check and publish documentation pages."),
    "contract": CommandEntry("cleats.cli.contract", "Snapshot, compare and check tool contracts."),
    "doctor": CommandEntry("cleats.cli.doctor", "Check the installation and show what is missing."),
    "install": CommandEntry("cleats.cli.install", "Register Cleats in the configuration of an agent."),
    "client-config": CommandEntry("cleats.cli.client_config", "Print the configuration block for an agent."),
}

GUESSES: Mapping[str, Sequence[str]] = {"status": ("index", "status")}
"""Words that people try first, and the commands that they run."""

ADVICE_BY_GUESS: Mapping[str, str] = {
    "list": "`cleats tools`, `cleats skills list`, `cleats assets list` or `cleats launch list`",
    "build": "`cleats index`",
    "init": "`cleats index` to index this repository, or `cleats install` to register with an agent",
    "setup": "`cleats install`",
    "start": "`cleats serve`, or `cleats launch start`",
    "run": "`cleats serve`, or `cleats call TOOL`",
    "mcp": "`cleats serve`",
    "check": "`cleats doctor`, `cleats skills validate` or `cleats contract check`",
    "validate": "`cleats assets validate` or `cleats skills validate`",
    "settings": "`cleats config`",
}
"""Words that could mean several commands, and which ones."""

VERSION_TEXT = f"cleats {TOOLING_VERSION} (contract {SCHEMA_VERSION})"

COMMANDS_WITHOUT_SETTINGS = frozenset({"doctor", "install", "client-config"})
"""The commands that must work even if a setting is wrong."""

_JSON_META_KEY = "cleats.json"


def wants_json(command_words: Sequence[str]) -> bool:
    """Return whether JSON output is requested, even if the rest of the command line is invalid."""
    options = command_words[: command_words.index("--")] if "--" in command_words else command_words
    return "--json" in options


def print_error_as_json(error: "ToolError") -> None:
    """Print a failure in the format of tool errors, so that a program need not read stderr."""
    from cleats.cli.output import echo_json  # noqa: PLC0415 - only failures need it

    echo_json({"ok": False, "error": error.as_json()})


BROKEN_PIPE_EXIT_CODE = 141
"""The exit code that a shell expects when the reader of the output has gone."""


@contextmanager
def _exit_quietly() -> Iterator[None]:
    try:
        yield
    except (BrokenPipeError, ExceptionGroup) as error:  # a task group wraps what its tasks raise
        if isinstance(error, ExceptionGroup) and error.split(BrokenPipeError)[1]:
            raise
        # Otherwise the rest of the buffer would be written at exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BROKEN_PIPE_EXIT_CODE)
    except KeyboardInterrupt:
        from cleats.cli.output import INTERRUPTED_EXIT_CODE  # noqa: PLC0415 - only here

        sys.exit(INTERRUPTED_EXIT_CODE)


@contextmanager
def _report_errors(*, as_json: bool) -> Iterator[None]:
    try:
        yield
    except (SettingError, click.ClickException) as error:
        from cleats.cli.output import UnusableInput  # noqa: PLC0415 - only failures need them
        from cleats.contract.errors import ErrorCode, ToolError  # noqa: PLC0415

        click_error = error if isinstance(error, click.ClickException) else UnusableInput(str(error))
        if not as_json:
            raise click_error from None
        is_usage_error = click_error.exit_code == click.UsageError.exit_code
        code = ErrorCode.INVALID_REQUEST if is_usage_error else ErrorCode.INTERNAL
        print_error_as_json(ToolError(code, click_error.format_message()))
        sys.exit(click_error.exit_code)


class LazyCommandGroup(click.Group):
    """A group that imports its commands only when they are used."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        as_json = wants_json(args)
        with _exit_quietly(), _report_errors(as_json=as_json):  # help is printed here
            context = super().make_context(info_name, args, *rest, **extra)
        context.meta[_JSON_META_KEY] = as_json
        return context

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS_BY_NAME)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in COMMANDS_BY_NAME:
            return None
        module = import_module(COMMANDS_BY_NAME[name].module)
        command: click.Command = getattr(module, name.replace("-", "_"))
        _mark_blocks(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.params.get("validate"):
            ctx.fail(_ONE_PATH_MESSAGE)
        if ctx.resilient_parsing:  # a shell asks what could come next
            return super().resolve_command(ctx, args)
        args = self._resolve_guess(ctx, args)
        known_words = (*COMMANDS_BY_NAME, *GUESSES, "help", "version")
        if args[0] not in COMMANDS_BY_NAME and (close_matches := get_close_matches(args[0], known_words, n=1)):
            ctx.fail(f"Unknown command {args[0]!r}. Did you mean {close_matches[0]!r}?")
        return super().resolve_command(ctx, args)

    def _resolve_guess(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the words of the command that a first guess means; answer `help` and `version` at once."""
        match args:
            case ["version"]:
                click.echo(VERSION_TEXT)
                ctx.exit()
            case ["help"]:
                click.echo(ctx.get_help(), color=ctx.color)
                ctx.exit()
            case ["help", *words]:
                return [*words, "--help"]
            case [guess, *rest] if guess in GUESSES:
                return [*GUESSES[guess], *rest]
            case [guess, *_] if guess in ADVICE_BY_GUESS:
                ctx.fail(f"Unknown command {guess!r}. Use {ADVICE_BY_GUESS[guess]}.")
        return args

    def invoke(self, ctx: click.Context) -> Any:
        with _exit_quietly(), _report_errors(as_json=ctx.meta[_JSON_META_KEY]):
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.about) for name, entry in COMMANDS_BY_NAME.items()])


def _mark_blocks(command: click.Command) -> None:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(f"\b\n{text}" if _BLOCK_PATTERN.match(text) else text for text in paragraphs)
    for subcommand in command.commands.values() if isinstance(command, click.Group) else ():
        _mark_blocks(subcommand)


_BLOCK_PATTERN = re.compile(r"Example: |.*\n  ")

_ONE_PATH_MESSAGE = "--validate takes one PATH and nothing else; `cleats assets validate` takes many."


@click.group(
    cls=LazyCommandGroup,
    invoke_without_command=True,
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(TOOLING_VERSION, message=VERSION_TEXT)
@click.option(
    "--validate",
    metavar="PATH",
    multiple=True,
    help="Validate one asset, print one line of JSON and exit with 0, 1 or 2.",
)
@click.pass_context
def cli(ctx: click.Context, validate: Sequence[str]) -> None:
    """The tool server for coding agents.

    \b
    Try it:           cleats index && cleats search "where are errors handled?"
    List the tools:   cleats tools
    Connect an agent: cleats install claude-code
    Check the setup:  cleats doctor

    Settings come from the environment (CLEATS_*), .cleats.toml in the repository and your own
    configuration file; `cleats COMMAND --help` explains each command.

    Every command exits with 130 after Ctrl-C and with 141 if its output is cut off, as by `| head`.
    """  # noqa: D301, D401 - this is the help; click reads the backspace
    ctx.color = choose_color(os.environ)
    if ctx.invoked_subcommand is None:
        from cleats.cli.assets import validate_file  # noqa: PLC0415 - help needs none of it

        if len(validate) != 1:
            ctx.fail(_ONE_PATH_MESSAGE if validate else "Missing command.")
        ctx.exit(validate_file(_load_reported_settings(), validate[0]))
    if ctx.invoked_subcommand not in COMMANDS_WITHOUT_SETTINGS:
        ctx.obj = _load_reported_settings()


def _load_reported_settings() -> Settings:
    """Load the settings and report misspelt variables on stderr, because stdout is for answers."""
    for warning in describe_unknown_variables(os.environ):
        click.echo(f"Warning: {warning}", err=True)
    return load_settings(os.environ)


def main() -> None:
    """Run the command line and exit with its code, even if a thread of an ended call does not end."""
    try:
        _run_command()
    except SystemExit as end:
        if threading.active_count() > 1:
            from cleats.runtime.shutdown import exit_despite_threads  # noqa: PLC0415 - help needs none of it

            exit_despite_threads(end.code if isinstance(end.code, int) else int(bool(end.code)))
        raise


def _run_command() -> None:
    try:
        sys.exit(cli.main(prog_name="cleats", standalone_mode=True))
    except Exception as error:
        if os.environ.get("CLEATS_LOG_LEVEL") == "debug":
            raise
        from cleats.contract.errors import ErrorCode, ToolError  # noqa: PLC0415 - only failures need them

        cause: Exception = error
        while isinstance(cause, ExceptionGroup):  # a task group's wrapping says nothing
            cause = cause.exceptions[0]
        if isinstance(cause, ToolError):  # such as an extra that a setting needs
            failure, code_text = cause, f" ({cause.code.name})"
        else:
            failure, code_text = ToolError(ErrorCode.INTERNAL, f"{type(cause).__name__}: {cause}"), ""
        if wants_json(sys.argv):
            print_error_as_json(failure)
        click.echo(f"Error: {failure.message}{code_text}", err=True)
        default_hint = "Run `cleats doctor` to check the installation; CLEATS_LOG_LEVEL=debug shows the traceback."
        click.echo(failure.hint or default_hint, err=True)
        sys.exit(click.UsageError.exit_code)
