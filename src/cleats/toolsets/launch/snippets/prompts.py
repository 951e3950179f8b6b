"""Interactive sessions as programs: prompts and what was answered are taken away."""

import re
from typing import Final

_SHELL: Final = re.compile(r"^\s*(?:\([\w.-]+\)\s*)?[$%#>]\s+(?=\S)")


def is_session(code: str) -> bool:
    """Whether some line has the prompt of the Python interpreter."""
    return any(re.match(r"\s*>>>( |$)", line) for line in code.splitlines())


def typed(code: str) -> str:
    """What was typed at the Python prompt; a continuation is a `...` below a prompt.

    A blank line between two inputs stays, so that the program keeps its paragraphs.
    """
    kept: list[str] = []
    inside = False
    indent = 0
    for line in code.splitlines():
        bare = line.strip()
        if bare.startswith(">>>"):
            indent = len(line) - len(line.lstrip())
            if not inside and kept and kept[-1]:
                kept.append("")
            kept.append(_after(line, indent))
            inside = True
        elif inside and bare.startswith("..."):
            kept.append(_after(line, indent))
        elif not bare:
            if kept and kept[-1]:
                kept.append("")
            inside = bool(kept) and inside
        else:
            inside = False
    return "\n".join(kept).strip("\n") + "\n" if kept else ""


def commands(code: str) -> str:
    """The commands of a shell session; a listing without prompts is returned as it is."""
    lines = code.splitlines()
    if not any(_SHELL.match(line) and line.lstrip()[0] in "$%" for line in lines):
        return code
    kept: list[str] = []
    goes_on = False
    for line in lines:
        prompt = _SHELL.match(line)
        if prompt and line.lstrip()[0] in "$%":
            kept.append(line[prompt.end() :])
        elif goes_on:
            kept.append(line.removeprefix("> "))
        else:
            continue
        goes_on = kept[-1].rstrip().endswith("\\")
    return "\n".join(kept) + "\n"


def _after(line: str, indent: int) -> str:
    rest = line[indent:][3:]
    return rest.removeprefix(" ").rstrip()
