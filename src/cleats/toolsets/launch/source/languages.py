"""What language a file is in, by its name."""

from collections import Counter
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.tree import Tree

BY_SUFFIX: Final = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescript",
    ".java": "java",
    ".kt": "kotlin",
    ".kts": "kotlin",
    ".cs": "csharp",
    ".fs": "fsharp",
    ".vb": "vb",
    ".go": "go",
    ".rs": "rust",
    ".php": "php",
    ".rb": "ruby",
    ".swift": "swift",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hpp": "cpp",
    ".hxx": "cpp",
    ".sh": "shell",
    ".bash": "shell",
}

ALIASES: Final = {
    "py": "python",
    "python3": "python",
    "pycon": "python",
    "pycon3": "python",
    "doctest": "python",
    "js": "javascript",
    "mjs": "javascript",
    "jsx": "javascript",
    "node": "javascript",
    "ts": "typescript",
    "tsx": "typescript",
    "c#": "csharp",
    "cs": "csharp",
    "c++": "cpp",
    "golang": "go",
    "rs": "rust",
    "rb": "ruby",
    "kt": "kotlin",
    "sh": "shell",
    "bash": "shell",
    "zsh": "shell",
    "console": "shell",
    "terminal": "shell",
    "shell-session": "shell",
    "shellsession": "shell",
    "sh-session": "shell",
    "yml": "yaml",
    "jsonc": "json",
    "htm": "html",
}
"""Other names for a language, as they stand behind a fence."""

_PROGRAMMING: Final = frozenset(BY_SUFFIX.values()) - {"shell"}


def named(word: str) -> str:
    """The language that a fence names; "unknown" for none, its own word for one not listed."""
    word = word.strip().lower().lstrip(".").removeprefix("{").removesuffix("}")
    return ALIASES.get(word, word) or "unknown"


def of_path(path: str) -> str:
    """The programming language of a file, "" for anything else."""
    return BY_SUFFIX.get(PurePosixPath(path).suffix.lower(), "")


def primary(tree: Tree, paths: list[str]) -> list[str]:
    """The languages that hold at least a tenth of the code's bytes, most first."""
    counted: Counter[str] = Counter()
    for path in paths:
        if (language := of_path(path)) in _PROGRAMMING:
            counted[language] += tree.size(path)
    if "cpp" in counted:  # a header belongs to the larger language beside it
        counted["cpp"] += counted.pop("c", 0)
    total = sum(counted.values())
    ranked = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    return [language for language, size in ranked if size * 10 >= total]
