"""A snippet: code of the repository that a page may show."""

import hashlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Snippet:
    """Code as it stands in a file, prompts and outputs taken away."""

    language: str
    code: str
    path: str
    start: int
    end: int
    tags: tuple[str, ...]
    fault: str = ""
    """Why it does not parse."""
    checked: bool = True
    """Whether there was a parser for its language."""
    dependencies: tuple[str, ...] = ()

    @property
    def snippet_id(self) -> str:
        return snippet_id(self.language, self.code)

    def as_json(self) -> dict[str, Any]:
        requirements: dict[str, Any] = {"dependencies": list(self.dependencies)}
        if not self.checked:
            requirements["runtime_notes"] = "There is no parser to check this language with."
        return {
            "snippet_id": self.snippet_id,
            "language": self.language,
            "tags": list(self.tags),
            "source": {
                "type": "repo_file",
                "path": self.path,
                "start_line": self.start,
                "end_line": max(self.start, self.end),
            },
            "code": self.code,
            "requirements": requirements,
            "validation": {
                "syntax_ok": self.checked and not self.fault,
                "runnable_ok": "unknown",
            },
        }


def normal(code: str) -> str:
    """Line feeds, no spaces at the ends of lines, no empty lines around; nothing else changes."""
    lines = [line.rstrip() for line in code.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return "\n".join(lines).strip("\n") + "\n"


def snippet_id(language: str, code: str) -> str:
    """The same code in the same language is the same snippet, wherever it stands."""
    return "snip_" + hashlib.sha256(f"{language}\n{normal(code)}".encode()).hexdigest()[:16]
