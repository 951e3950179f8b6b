"""The code of documents: its id, and the input of sessions without prompts and outputs."""

import hashlib
import re
from typing import Final

_SHELL_PROMPT_PATTERN: Final = re.compile(r"^\s*(?:\([\w.-]+\)\s*)?[$%#>]\s+(?=\S)")


MAX_OUTPUT_LINES: Final = 12
"""Lines of an output that become comments; a longer output would hide the program."""


def normalize_code(code: str) -> str:
    """Normalize line ends, and strip trailing spaces and surrounding blank lines."""
    lines = [line.rstrip() for line in code.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return "\n".join(lines).strip("\n") + "\n"


def compute_snippet_id(language: str, code: str) -> str:
    """Return the id of code, which depends only on its language and its text."""
    return "snip_" + hashlib.sha256(f"{language}\n{normalize_code(code)}".encode()).hexdigest()[:16]


def is_session(code: str) -> bool:
    """Return True if a line has the prompt of the Python interpreter."""
    return any(re.match(r"\s*>>>( |$)", line) for line in code.splitlines())


def count_open_brackets(lines: list[str]) -> int:
    """Return how many brackets the last statement of an input leaves open; strings may hide some."""
    text = "\n".join(lines)
    return sum(map(text.count, "([{")) - sum(map(text.count, ")]}"))


def extract_session_input(code: str) -> str:
    """Return the input of a Python session, with short outputs as comments below it.

    A continuation is a `...` below a prompt, or a line below an open bracket. A blank line between two
    inputs is kept, so that the program keeps its paragraphs.
    """
    input_lines: list[str] = []
    output_lines: list[str] = []
    in_input = False
    indent = 0

    def end_output() -> None:
        is_traceback = output_lines[:1] == ["Traceback (most recent call last):"]
        shown_lines = output_lines[-1:] if is_traceback else output_lines
        if input_lines and len(shown_lines) <= MAX_OUTPUT_LINES:
            input_lines.extend(f"# {line}" for line in shown_lines)
        output_lines.clear()

    for line in code.splitlines():
        stripped = line.strip()
        if stripped.startswith(">>>"):
            indent = len(line) - len(line.lstrip())
            end_output()
            if not in_input and input_lines and input_lines[-1]:
                input_lines.append("")
            in_input = True
        elif not stripped:
            end_output()
            in_input = False
            if input_lines and input_lines[-1]:
                input_lines.append("")
            continue
        else:
            in_input = in_input and (stripped.startswith("...") or count_open_brackets(input_lines) > 0)
        if in_input:
            has_prompt = stripped.startswith((">>>", "..."))
            input_lines.append(line[indent + 3 :].removeprefix(" ").rstrip() if has_prompt else line[indent:].rstrip())
        elif input_lines and input_lines[-1]:  # text after a blank line is no output
            output_lines.append(line[indent:].rstrip())
    end_output()
    return "\n".join(input_lines).strip("\n") + "\n" if input_lines else ""


def extract_commands(code: str) -> str:
    """Return the commands of a shell session; code without prompts is returned unchanged."""
    command_lines: list[str] = []
    is_continued = False
    for line in code.splitlines():
        prompt = _SHELL_PROMPT_PATTERN.match(line) if line.lstrip()[:1] in ("$", "%") else None
        if prompt or is_continued:
            command_lines.append(line[prompt.end() :] if prompt else line.removeprefix("> "))
            is_continued = command_lines[-1].rstrip().endswith("\\")
    return "\n".join(command_lines) + "\n" if command_lines else code
