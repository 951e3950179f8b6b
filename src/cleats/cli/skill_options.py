"""The options that say which skills count, for `serve` and for `skills`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from cleats.settings import Settings

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

OPTIONS = (
    click.option(
        "--skill-dir",
        "skill_dirs",
        multiple=True,
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Look for skills here first; may be repeated, the first is the strongest.",
    ),
    click.option("--no-plugins", is_flag=True, help="Leave out the skills of Claude plugins."),
    click.option(
        "--include",
        multiple=True,
        metavar="PATTERN",
        help="Only these skills: a name, a glob, root:PLACE or plugin:NAME; may be repeated.",
    ),
    click.option(
        "--exclude", multiple=True, metavar="PATTERN", help="All skills but these; the same."
    ),
)


def skill_options(command: CommandT) -> CommandT:
    """Add the options to a command, which hands them to `applied`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def applied(
    settings: Settings,
    *,
    skill_dirs: tuple[Path, ...],
    no_plugins: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
) -> Settings:
    """The settings with what the command line says; it wins where it says something."""
    given: dict[str, Any] = {}
    if skill_dirs:
        given["skill_dirs"] = tuple(folder.expanduser().absolute() for folder in skill_dirs)
    if no_plugins:
        given["skill_plugins"] = "off"
    if include:
        given["skill_include"] = _split(include)
    if exclude:
        given["skill_exclude"] = _split(exclude)
    return replace(settings, **given)


def _split(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.strip() for each in patterns for word in each.split(",") if word.strip())
