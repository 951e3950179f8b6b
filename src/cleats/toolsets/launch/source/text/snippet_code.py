"""Code of snippets: its normal form and id, and the input of sessions."""

import hashlib
import re
from typing import Final


def normalize_code(code: str) -> str:
    """Normalize line ends, and strip trailing spaces and surrounding blank lines."""
    lines = [line.rstrip() for line in code.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return "\n".join(lines).strip("\n") + "\n"


def compute_snippet_id(language: str, code: str) -> str:
    """Return the id of code, which depends only on its language and its text."""
    return "snip_" + hashlib.sha256(f"{language}\n{normalize_code(code)}".encode()).hexdigest()[:16]


_SHELL_PROMPT_PATTERN: Final = re.compile(r"^\s*(?:\([\w.-]+\)\s*)?[$%#>]\s+(?=\S)")


def is_session(code: str) -> bool:
    """Return True if a line has the prompt of the Python interpreter."""
    return any(re.match(r"\s*>>>( |$)", line) for line in code.splitlines())


def extract_session_input(code: str) -> str:
    """Return the input of a Python session; a continuation is a `...` below a prompt.

    A blank line between two inputs is kept, so that the program keeps its paragraphs.
    """
    input_lines: list[str] = []
    in_input = False
    indent = 0
    for line in code.splitlines():
        stripped = line.strip()
        if stripped.startswith(">>>"):
            indent = len(line) - len(line.lstrip())
            if not in_input and input_lines and input_lines[-1]:
                input_lines.append("")
            input_lines.append(_strip_prompt(line, indent))
            in_input = True
        elif in_input and stripped.startswith("..."):
            input_lines.append(_strip_prompt(line, indent))
        elif not stripped:
            if input_lines and input_lines[-1]:
                input_lines.append("")
            in_input = bool(input_lines) and in_input
        else:
            in_input = False
    return "\n".join(input_lines).strip("\n") + "\n" if input_lines else ""


def extract_commands(code: str) -> str:
    """Return the commands of a shell session; code without prompts is returned unchanged."""
    lines = code.splitlines()
    if not any(_SHELL_PROMPT_PATTERN.match(line) and line.lstrip()[0] in "$%" for line in lines):
        return code
    command_lines: list[str] = []
    is_continued = False
    for line in lines:
        prompt = _SHELL_PROMPT_PATTERN.match(line)
        if prompt and line.lstrip()[0] in "$%":
            command_lines.append(line[prompt.end() :])
        elif is_continued:
            command_lines.append(line.removeprefix("> "))
        else:
            continue
        is_continued = command_lines[-1].rstrip().endswith("\\")
    return "\n".join(command_lines) + "\n"


def _strip_prompt(line: str, indent: int) -> str:
    rest = line[indent:][3:]
    return rest.removeprefix(" ").rstrip()
