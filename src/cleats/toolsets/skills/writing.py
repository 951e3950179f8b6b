"""A new skill that keeps the specification."""

import json
from pathlib import Path

from cleats.toolsets.skills.reading import LONGEST_DESCRIPTION, LONGEST_NAME, NAME
from cleats.toolsets.skills.skill import FILE

TEMPLATE = """\
---
name: {name}
description: {description}
---

# {title}

Say here what the agent should do, step by step. It reads this only once the description above has
made it choose the skill, so keep that one short and full of the words people will use.

1. First step.
2. Second step.

Longer material goes into files beside this one, such as references/ or scripts/; link to them, and
the agent reads them when it needs them.
"""


class BadSkillError(ValueError):
    """Raised when a skill cannot be written so; the message says what would do."""


def write_skill(folder: Path, name: str, description: str = "") -> Path:
    """Write the skeleton of a skill into a folder of skills.

    Raises:
        BadSkillError: the name or the description breaks a rule, or the skill is there.
        OSError: it cannot be written.
    """
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise BadSkillError(
            f"{name!r} cannot be a skill's name: use up to {LONGEST_NAME} lower-case letters, "
            "digits and single hyphens, such as release-notes."
        )
    if len(description) > LONGEST_DESCRIPTION:
        raise BadSkillError(f"A description has at most {LONGEST_DESCRIPTION} characters.")
    path = folder / name / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    title = name.replace("-", " ").capitalize()
    about = " ".join(description.split()) or f"{title}. Use when the user asks for it."
    text = TEMPLATE.format(
        name=name, title=title, description=json.dumps(about, ensure_ascii=False)
    )
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise BadSkillError(f"{path} is there already.") from None
    return path
