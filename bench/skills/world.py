"""Folders of skills as they are found in the wild: short headers, two thousand bytes of text."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

WORDS = (
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
BODY = "Follow these steps and check each of them before you go on to the next one.\n" * 24


def name(number: int) -> str:
    verb = WORDS[number % len(WORDS)]
    noun = WORDS[number // len(WORDS) % len(WORDS)]
    return f"{verb}-{noun}-{number:05}"


def write(folder: Path, count: int) -> Path:
    """So many skills, each in its folder; a tenth have quoted headers, a tenth bundled files."""
    for number in range(count):
        skill = folder / name(number)
        skill.mkdir(parents=True)
        edit(skill, number, 0)
        if number % 10 == 1:
            (skill / "references").mkdir()
            (skill / "references" / "guide.md").write_text(BODY)
    settle([folder, *folder.iterdir(), *folder.glob("*/SKILL.md")])
    return folder


def edit(skill: Path, number: int, edition: int) -> None:
    """Write one skill, in the edition of that number."""
    about = f"Helps to {skill.name.replace('-', ' ')}, and to keep what comes of it. ({edition})"
    if number % 10 == 0:
        about = f'>-\n  {about}\nmetadata:\n  version: "1.{edition}"'
    (skill / "SKILL.md").write_text(
        f"---\nname: {skill.name}\ndescription: {about}\n---\n\n# {skill.name}\n\n{BODY}"
    )


def settle(paths: Sequence[Path]) -> None:
    """Make files look as if they had been written long ago, as most have been."""
    then = time.time() - 3600
    for path in paths:
        os.utime(path, (then, then))
