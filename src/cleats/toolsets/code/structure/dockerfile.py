"""Dockerfiles: a chunk for each stage, images as imports, settings as fields."""

import re
from collections.abc import Iterator
from typing import Final

from cleats.toolsets.code.structure.outline import Outline

_INSTRUCTION = re.compile(r"\s{0,40}([A-Za-z]{2,20})(?:[ \t]+(.*))?$", re.DOTALL)
_FROM = re.compile(r"(?:--\S+\s+)*+(\S+)(?:\s+[Aa][Ss]\s+(\S+))?")
_STAGE = re.compile(r"--from=(\S+)")
_HEREDOC = re.compile(r"<<-?[\"']?(\w+)[\"']?")
_COMMAND = re.compile(r"(?:^|&&|\|\||;|\|)\s*(?:(?:sudo|exec|set -\w+|\w+=\S*)\s+)*+([\w./-]+)")
_PAIR = re.compile(r"([\w.-]+)=(\"[^\"]*\"|\S+)")
_NAMED: Final = ("env", "arg", "label")
_PLAIN: Final = ("expose", "user", "workdir", "cmd", "entrypoint", "healthcheck", "shell", "volume")
_MOST: Final = 4000
"""Characters of an instruction that are looked at."""


def read(outline: Outline) -> None:
    stages: set[str] = set()
    for at, word, rest in _instructions(outline.source.lines):
        if word == "from" and (found := _FROM.match(rest)):
            image, alias = found[1], found[2] or ""
            if image.lower() in stages:
                outline.say(at, "uses", image)
            elif image != "scratch":
                outline.imported(image)
            stages.add(alias.lower())
            outline.cut(
                _with_comment(outline, at), "stage", alias or image, signature=f"FROM {rest}"
            )
        else:
            _instruction(outline, at, word, rest)


def _instruction(outline: Outline, at: int, word: str, rest: str) -> None:
    if word == "run":
        for found in _COMMAND.finditer(rest):
            outline.say(at, "calls", found[1])
    elif word in ("copy", "add"):
        for found in _STAGE.finditer(rest):
            outline.say(at, "uses", found[1])
    elif word in _NAMED:
        for key, value in _PAIR.findall(rest) or [_split(rest)]:
            outline.field(at, f"{word}.{key}", value.strip('"'))
    elif word in _PLAIN:
        outline.field(at, word, rest)


def _split(rest: str) -> tuple[str, str]:
    """`ENV NAME value`; one that is still being written may have neither."""
    name, *value = rest.split(None, 1) or [""]
    return name, "".join(value)


def _instructions(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Each instruction as one line, with the line it begins on."""
    lasts = {line.strip(): at for at, line in enumerate(lines)}
    at = 0
    while at < len(lines):
        start, parts = at, [lines[at][:_MOST]]
        while parts[-1].rstrip().endswith("\\") and at + 1 < len(lines):
            at += 1
            parts.append("" if lines[at].lstrip().startswith("#") else lines[at][:_MOST])
            if not parts[-1].strip():
                parts[-1] = "\\"  # comments and blank lines do not end an instruction
        whole = " ".join(part.rstrip().removesuffix("\\").strip() for part in parts)[:_MOST]
        if (heredoc := _HEREDOC.search(whole)) and lasts.get(heredoc[1], 0) > at:
            at += 1
            while lines[at].strip() != heredoc[1]:
                at += 1
        at += 1
        if (found := _INSTRUCTION.match(whole)) and not whole.lstrip().startswith("#"):
            yield start, found[1].lower(), (found[2] or "").strip()


def _with_comment(outline: Outline, at: int) -> int:
    while at > 0 and outline.source.lines[at - 1].lstrip().startswith("#"):
        at -= 1
    return at
