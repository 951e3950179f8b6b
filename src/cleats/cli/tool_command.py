"""What commands share: options, shell completion, and calls of one tool, as an agent would make them.

Completion offers names from the tables that the commands read, so every offered name is accepted. If the names cannot
be determined (a wrong setting, a package that does not load), nothing is offered, because an error would garble a
half-typed line.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from msgspec.structs import replace

from cleats.cli.output import (
    INTERRUPTED_EXIT_CODE,
    ProgressPrinter,
    echo_json,
    is_json_requested,
    json_option,
    keep_in_meta,
)
from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import SettingError, Settings, replace_settings

complete_files = click.Path().shell_complete
complete_folders = click.Path(file_okay=False).shell_complete


def make_completer(
    list_names: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Make a completer for the names of a table, which is read only when needed."""

    def complete_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        import logging  # noqa: PLC0415 - only a shell needs it

        logging.disable()  # commands report what is skipped
        try:
            return [name for name in list_names() if name.startswith(incomplete)]
        except SettingError:
            return []

    return complete_names


def _list_toolsets() -> Iterable[str]:
    from cleats import app  # noqa: PLC0415 - help needs none of it

    return app.list_toolset_names()


def _list_tools() -> Iterable[str]:
    from cleats import app  # noqa: PLC0415 - help needs none of it
    from cleats.cli.settings_loader import load_settings  # noqa: PLC0415

    return [tool.name for tool in app.build_registry(load_settings(os.environ), ())]


complete_toolsets = make_completer(_list_toolsets)
complete_tools = make_completer(_list_tools)


_REPO_META_KEY: Final = "cleats.repo"
"""The key under which the value of --repo is kept until the PATH argument is resolved."""

repo_option = click.option(
    "--repo", metavar="DIR", help="Repository. [default: the one that contains the current folder]"
)

mode_choice = click.Choice(["all", "code", "prose", "extracted-prose", "records"])


def json_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json to a command, as its last option, and pass it the settings."""
    return json_option(click.pass_obj(command))


def path_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add PATH to a command; as in the search commands, it may also be given as --repo."""
    complete: Any = {"shell_complete": complete_folders}
    kept = keep_in_meta(_REPO_META_KEY)
    repo_alias = click.option("--repo", metavar="DIR", help="The same as PATH.", is_eager=True, **kept, **complete)
    return click.argument("path", required=False, callback=_resolve_path, **complete)(repo_alias(command))


def _resolve_path(ctx: click.Context, _argument: click.Parameter, path: str | None) -> str | None:
    repo: str | None = ctx.meta.get(_REPO_META_KEY)
    if path is not None and repo is not None:
        raise click.UsageError("PATH and --repo are the same; give one of them.")
    return repo if path is None else path


def call_tool(
    settings: Settings, tool: str, flags: Mapping[str, str] | None = None, /, **arguments: Any
) -> dict[str, Any]:
    """Call a tool and return its result; print the error and exit if the call fails.

    Names of options become names of arguments: `dry_run` is `dryRun`. Arguments that are None are omitted. Error texts
    name the flag of an argument instead of its name.
    """
    camel_arguments = {re.sub("_(.)", lambda match: match[1].upper(), name): value for name, value in arguments.items()}
    result, warnings = _run_tool(settings, tool, flags, camel_arguments)
    if is_json_requested():
        return {**result, **({"warnings": warnings} if warnings else {})}
    for warning in warnings:
        click.echo(f"Note: {warning['message']}", err=True)
    return dict(result)


def call_text_tool(settings: Settings, tool: str, /, **arguments: Any) -> str:
    """Call a tool that answers with text and return it; print the error and exit if the call fails."""
    text: str = _run_tool(settings, tool, None, arguments)[0]
    return text


def _run_tool(
    settings: Settings, tool: str, flags: Mapping[str, str] | None, arguments: Mapping[str, Any]
) -> tuple[Any, Sequence[Mapping[str, Any]]]:
    from cleats.cli.call_runner import run_call  # noqa: PLC0415 - help needs none of these
    from cleats.contract.outcome import Cancelled, Done  # noqa: PLC0415

    present_arguments = {name: value for name, value in arguments.items() if value is not None}
    quiet_settings = replace(settings, log_level="error")  # a person wants only the answer
    call_result = run_call(quiet_settings, tool, present_arguments, ProgressPrinter(outside_terminal=False))
    outcome = call_result.outcome
    if isinstance(outcome, Cancelled):
        click.echo("Cancelled.", err=True)
        sys.exit(INTERRUPTED_EXIT_CODE)
    if not isinstance(outcome, Done):
        exit_with_error(outcome.error, flags)
    return outcome.result, call_result.call.meta.warnings


def exit_with_error(error: ToolError, flags: Mapping[str, str] | None = None) -> NoReturn:
    """Print an error and exit with code 2 if the request was invalid, otherwise with 1."""
    if is_json_requested():
        echo_json({"ok": False, "error": error.as_json()})
    else:
        click.echo(f"Error: {replace_argument_names(error.message, flags or {})}", err=True)
        if error.hint:
            click.echo(replace_argument_names(error.hint, flags or {}), err=True)
    sys.exit(2 if error.code is ErrorCode.INVALID_REQUEST else 1)


def replace_argument_names(text: str, flags: Mapping[str, str]) -> str:
    """Replace the names of arguments in a tool's text with the flags of the command line.

    The name of an argument that is also an ordinary word is replaced only at the start of the text.
    """
    for name, flag in flags.items():
        text = re.sub(rf"\A{name}(?=: )", flag, text)
        if not name.islower():
            text = re.sub(rf"(?<![\w/'\"-]){name}(?![\w/'\"-])", flag, text)
    return text


_PATH_TYPE = click.Path(path_type=Path)
_SKILL_DIR_HELP = "Search this folder for skills first; repeatable, in order of precedence."
_INCLUDE_HELP = "Serve only these skills, such as pdf, 'doc*', root:user or plugin:office; repeatable."


def skill_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, and pass it the settings that they change."""

    @click.option("--skill-dir", "skill_dirs", multiple=True, metavar="DIR", type=_PATH_TYPE, help=_SKILL_DIR_HELP)
    @click.option("--no-plugins", is_flag=True, help="Ignore the skills of Claude plugins.")
    @click.option("--include", multiple=True, metavar="PATTERN", help=_INCLUDE_HELP)
    @click.option(
        "--exclude", multiple=True, metavar="PATTERN", help="Do not serve these skills; patterns as above; repeatable."
    )
    @click.pass_obj
    @wraps(command)
    def run_command(
        settings: Settings, /, *args: Any, skill_dirs: tuple[Path, ...], no_plugins: bool, **option_values: Any
    ) -> Any:
        overrides: dict[str, Any] = {
            "skill_dirs": tuple(folder.expanduser().absolute() for folder in skill_dirs),
            "skill_plugins": "off" if no_plugins else "",
            "skill_include": _split_patterns(option_values.pop("include")),
            "skill_exclude": _split_patterns(option_values.pop("exclude")),
        }
        chosen = {name: value for name, value in overrides.items() if value}
        return command(replace_settings(settings, **chosen), *args, **option_values)

    return run_command


def _split_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.strip() for pattern in patterns for word in pattern.split(",") if word.strip())
