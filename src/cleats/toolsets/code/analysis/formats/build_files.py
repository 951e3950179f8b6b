"""Dockerfiles: a chunk for each stage, images as imports, settings as fields."""

import re
from collections.abc import Iterator
from typing import Final

from cleats.toolsets.code.analysis.formats.outline import MAX_LINE_CHARS, Outline

_INSTRUCTION_PATTERN = re.compile(r"\s{0,40}([A-Za-z]{2,20})(?:[ \t]+(.*))?$", re.DOTALL)
_FROM_PATTERN = re.compile(r"(?:--\S+\s+)*+(\S+)(?:\s+[Aa][Ss]\s+(\S+))?")
_STAGE_PATTERN = re.compile(r"--from=(\S+)")
_HEREDOC_PATTERN = re.compile(r"<<-?[\"']?(\w+)[\"']?")
_SHELL_COMMAND_PATTERN = re.compile(r"(?:^|&&|\|\||;|\|)\s*(?:(?:sudo|exec|set -\w+|\w+=\S*)\s+)*+([\w./-]+)")
_PAIR_PATTERN = re.compile(r"([\w.-]+)=(\"[^\"]*\"|\S+)")
_KEY_VALUE_INSTRUCTIONS: Final = ("env", "arg", "label")
_VALUE_INSTRUCTIONS: Final = ("expose", "user", "workdir", "cmd", "entrypoint", "healthcheck", "shell", "volume")
_MAX_INSTRUCTION_CHARS: Final = 4000
"""Characters of an instruction that are examined."""


def read_dockerfile(outline: Outline) -> None:
    stages: set[str] = set()
    for index, instruction, rest in _iterate_instructions(outline.source.lines):
        if instruction == "from" and (match := _FROM_PATTERN.match(rest)):
            image, alias = match[1], match[2] or ""
            if image.lower() in stages:
                outline.add_mention(index, "uses", image)
            elif image != "scratch":
                outline.add_import(image)
            stages.add(alias.lower())
            start = outline.source.find_comment_start(index, "#")
            outline.cut(start, "stage", alias or image, signature=f"FROM {rest}")
        else:
            _read_instruction(outline, index, instruction, rest)


def _read_instruction(outline: Outline, index: int, instruction: str, rest: str) -> None:
    if instruction == "run":
        for match in _SHELL_COMMAND_PATTERN.finditer(rest):
            outline.add_mention(index, "calls", match[1])
    elif instruction in ("copy", "add"):
        for match in _STAGE_PATTERN.finditer(rest):
            outline.add_mention(index, "uses", match[1])
    elif instruction in _KEY_VALUE_INSTRUCTIONS:
        # `ENV NAME value`; an incomplete line may lack either.
        for key, value in _PAIR_PATTERN.findall(rest) or [[*rest.split(None, 1), "", ""][:2]]:
            outline.add_field(index, f"{instruction}.{key}", value.strip('"'))
    elif instruction in _VALUE_INSTRUCTIONS:
        outline.add_field(index, instruction, rest)


def _iterate_instructions(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Yield each instruction joined to one line, with the index of its first line."""
    last_lines = {line.strip(): index for index, line in enumerate(lines)}
    index = 0
    while index < len(lines):
        start, parts = index, [lines[index][:_MAX_INSTRUCTION_CHARS]]
        while parts[-1].rstrip().endswith("\\") and index + 1 < len(lines):
            index += 1
            parts.append("" if lines[index].lstrip().startswith("#") else lines[index][:_MAX_INSTRUCTION_CHARS])
            if not parts[-1].strip():
                parts[-1] = "\\"  # comments and blank lines do not end an instruction
        text = " ".join(part.rstrip().removesuffix("\\").strip() for part in parts)[:_MAX_INSTRUCTION_CHARS]
        if (heredoc := _HEREDOC_PATTERN.search(text)) and last_lines.get(heredoc[1], 0) > index:
            index += 1
            while lines[index].strip() != heredoc[1]:
                index += 1
        index += 1
        if (match := _INSTRUCTION_PATTERN.match(text)) and not text.lstrip().startswith("#"):
            yield start, match[1].lower(), (match[2] or "").strip()


_ASSIGNMENT_PATTERN = re.compile(r"(?:export\s+|override\s+)*+([\w.%/$(){}-]{1,200})\s*(?:[:?+!]|::)?=\s*(.*)")
_TARGET_PATTERN = re.compile(r"([^\s#:=][^#:=]{0,500}?)\s{0,20}::?(?![:=])([^=]*)$")
_INCLUDE_PATTERN = re.compile(r"-?s?include\s+(.+)")
_RECIPE_COMMAND_PATTERN = re.compile(r"\t\s{0,40}[@+-]*\s*([\w./$(){}-]{1,100})")
_DOC_COMMENT_PATTERN = re.compile(r"##+\s*(.*)")
_SPECIAL_TARGETS: Final = frozenset({".PHONY", ".SUFFIXES", ".DEFAULT", ".PRECIOUS", ".SECONDARY", ".SILENT"})


def read_makefile(outline: Outline) -> None:
    lines = outline.source.lines
    in_define = False
    for index, full_line in enumerate(lines):
        line = full_line[:MAX_LINE_CHARS]
        if line.startswith(("define ", "endef")):
            in_define = line.startswith("define ")
        elif line.startswith("\t"):
            if match := _RECIPE_COMMAND_PATTERN.match(line):
                outline.add_mention(index, "calls", match[1])
        elif in_define or not line.strip() or (index and lines[index - 1].rstrip().endswith("\\")):
            continue
        elif match := _INCLUDE_PATTERN.match(line):
            for name in match[1].split():
                outline.add_import(name)
        elif match := _ASSIGNMENT_PATTERN.match(line):
            outline.add_field(index, match[1], match[2].strip())
        elif match := _TARGET_PATTERN.match(_strip_comment(line)):
            _read_target(outline, index, match)


def _read_target(outline: Outline, index: int, match: re.Match[str]) -> None:
    name = match[1].strip()
    if name in _SPECIAL_TARGETS:
        return
    lines = outline.source.lines
    start = index
    while start > 0 and (lines[start - 1].startswith("#") or lines[start - 1].startswith((".PHONY", ".SILENT"))):
        start -= 1
    doc_comment = _DOC_COMMENT_PATTERN.search(lines[index][:MAX_LINE_CHARS])
    comment_above = " ".join(line.strip("# \t") for line in lines[start:index] if line.startswith("#"))
    doc = doc_comment[1].strip() if doc_comment else comment_above
    outline.cut(start, "target", name, doc, _strip_comment(lines[index][:MAX_LINE_CHARS]))
    for word in match[2].split(";", 1)[0].split():
        if word not in ("|", "\\"):
            outline.add_mention(index, "uses", word)


def _strip_comment(line: str) -> str:
    return line.split("#", 1)[0].rstrip()
