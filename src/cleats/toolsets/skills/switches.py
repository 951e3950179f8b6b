"""Which skills are switched off: a list of full names in a file of the user's.

The skills themselves stay as they are; a checkout or a plugin is not ours to edit, and an update
would undo it. Only a skill that was switched off by renaming its file is switched on by renaming.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from cleats.settings import Settings
from cleats.toolsets.skills.skill import DISABLED_FILE, FILE, Skill


def switch_file(settings: Settings) -> Path:
    return settings.data_dir / "skills" / "disabled.json"


def read_switches(settings: Settings) -> list[str]:
    """The full names that are off; none when there is no list.

    Raises:
        ValueError: the file holds something else.
    """
    try:
        value = json.loads(switch_file(settings).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError("it is not a list of names")
    return value


def switch_off(settings: Settings, skills: Iterable[Skill]) -> None:
    """Hide skills from every agent that this server serves."""
    _write(settings, {*read_switches(settings), *(skill.full_name for skill in skills)})


def switch_on(settings: Settings, skills: Iterable[Skill]) -> None:
    """Show skills again, however they were switched off.

    Raises:
        OSError: a file cannot be renamed.
    """
    names = set()
    for skill in skills:
        names.add(skill.full_name.casefold())
        if skill.file == DISABLED_FILE:
            Path(skill.path).rename(Path(skill.folder, FILE))
    _write(settings, {name for name in read_switches(settings) if name.casefold() not in names})


def _write(settings: Settings, names: set[str]) -> None:
    path = switch_file(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(sorted(names), indent=2, ensure_ascii=False) + "\n", "utf-8")
    aside.replace(path)
