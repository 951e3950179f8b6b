"""Folders of skills like real ones: short headers, two thousand bytes of text."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

NAME_WORDS = (
    "read",
    "write",
    "parse",
    "merge",
    "split",
    "convert",
    "review",
    "deploy",
    "release",
    "chart",
)
SKILL_BODY = "Follow these steps and check each of them before you go on to the next one.\n" * 24


def format_skill_name(number: int) -> str:
    verb = NAME_WORDS[number % len(NAME_WORDS)]
    noun = NAME_WORDS[number // len(NAME_WORDS) % len(NAME_WORDS)]
    return f"{verb}-{noun}-{number:05}"


def write_skills(folder: Path, count: int) -> Path:
    """Write this many skills; a tenth have quoted headers, a tenth have bundled files."""
    for number in range(count):
        skill = folder / format_skill_name(number)
        skill.mkdir(parents=True)
        write_skill(skill, number, 0)
        if number % 10 == 1:
            (skill / "references").mkdir()
            (skill / "references" / "guide.md").write_text(SKILL_BODY)
    backdate_files([folder, *folder.iterdir(), *folder.glob("*/SKILL.md")])
    return folder


def write_skill(skill: Path, number: int, edition: int) -> None:
    """Write one edition of one skill."""
    summary = f"Helps to {skill.name.replace('-', ' ')}, and to keep what comes of it. ({edition})"
    if number % 10 == 0:
        summary = f'>-\n  {summary}\nmetadata:\n  version: "1.{edition}"'
    (skill / "SKILL.md").write_text(
        f"---\nname: {skill.name}\ndescription: {summary}\n---\n\n# {skill.name}\n\n{SKILL_BODY}"
    )


def backdate_files(paths: Sequence[Path]) -> None:
    """Give files a modification time of long ago, as most files have."""
    timestamp = time.time() - 3600
    for path in paths:
        os.utime(path, (timestamp, timestamp))
