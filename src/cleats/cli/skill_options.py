"""The options that select skills, for `serve`, `http` and `skills`."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from cleats.settings import Settings, replace_settings

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


def skill_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, and pass it the settings that they change."""

    @click.pass_obj
    @wraps(command)
    def run_command(
        settings: Settings,
        /,
        *args: Any,
        skill_dirs: tuple[Path, ...],
        no_plugins: bool,
        include: tuple[str, ...],
        exclude: tuple[str, ...],
        **option_values: Any,
    ) -> Any:
        overrides: dict[str, Any] = {
            "skill_dirs": tuple(folder.expanduser().absolute() for folder in skill_dirs),
            "skill_plugins": "off" if no_plugins else "",
            "skill_include": _split_patterns(include),
            "skill_exclude": _split_patterns(exclude),
        }
        chosen = {name: value for name, value in overrides.items() if value}
        return command(replace_settings(settings, **chosen), *args, **option_values)

    for option in reversed(SKILL_OPTIONS):
        run_command = option(run_command)
    return run_command


def _split_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.strip() for pattern in patterns for word in pattern.split(",") if word.strip())
