"""The options that select skills, for `serve`, `http` and `skills`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from cleats.settings import Settings

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

SKILL_OPTIONS = (
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
    click.option("--exclude", multiple=True, metavar="PATTERN", help="All skills but these; the same."),
)


def skill_options(command: CommandT) -> CommandT:
    """Add the options to a command, which passes them to `apply_skill_options`."""
    for option in reversed(SKILL_OPTIONS):
        command = option(command)
    return command


def apply_skill_options(
    settings: Settings,
    *,
    skill_dirs: tuple[Path, ...],
    no_plugins: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
) -> Settings:
    """Return the settings with the values of the command line, which take precedence."""
    overrides: dict[str, Any] = {}
    if skill_dirs:
        overrides["skill_dirs"] = tuple(folder.expanduser().absolute() for folder in skill_dirs)
    if no_plugins:
        overrides["skill_plugins"] = "off"
    if include:
        overrides["skill_include"] = _split_patterns(include)
    if exclude:
        overrides["skill_exclude"] = _split_patterns(exclude)
    return replace(settings, **overrides)


def _split_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.strip() for pattern in patterns for word in pattern.split(",") if word.strip())
