"""Paths that callers name: inside the repository, as globs, as files."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError


def make_globs(args: Mapping[str, Any]) -> list[str]:
    """Return the globs for ripgrep that a `path` argument stands for: a folder, a file or a glob."""
    path = (args.get("path") or "").strip().removeprefix("./").rstrip("/")
    if not path or path == ".":
        return []
    if any(sign in path for sign in "*?[{"):
        return [path]
    return [f"/{path}", f"/{path}/**"] if "/" in path or "." in path else [path, f"**/{path}/**"]


def resolve_file(root: Path, path_text: str) -> tuple[Path, str]:
    """Return a path inside the repository, and the same relative to it.

    Raises:
        ToolError: FORBIDDEN, it is outside; NOT_FOUND, it does not exist.
    """
    path = Path(os.path.normpath(root / path_text.strip()))
    try:
        resolved = path.resolve()
    except (OSError, ValueError, RuntimeError):
        resolved = path
    if not resolved.is_relative_to(root):
        raise ToolError(
            ErrorCode.FORBIDDEN, f"{path_text} is outside of the repository {root}.", hint="Give a path inside it."
        )
    if not path.exists():
        raise ToolError(ErrorCode.NOT_FOUND, f"{path_text} does not exist.", hint=_suggest_path(root, path_text))
    return path, path.relative_to(root).as_posix() if path != root else "."


def _suggest_path(root: Path, path_text: str) -> str:
    from cleats.toolsets.code.explore.ripgrep import list_files  # noqa: PLC0415 - only for an error

    name = Path(path_text).name
    same_name = [path for path in list_files(root) if path.rsplit("/", 1)[-1] == name][:3]
    if same_name:
        return f"Did you mean {', '.join(same_name)}?"
    return "Paths are relative to the repository; outline shows its folders."
