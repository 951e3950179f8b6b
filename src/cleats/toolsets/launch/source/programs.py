"""Python programs of strangers, read and never run."""

import ast


def parse(text: str | None) -> ast.Module | None:
    """The program; None for what is none, or is nested deeper than can be read."""
    try:
        return ast.parse(text or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def written(part: ast.AST) -> str:
    """A part of a program as text; dots for what is nested deeper than can be written."""
    try:
        return ast.unparse(part)
    except RecursionError:
        return "..."
