"""Errors of requests for a skill. Each error contains its own message and hint."""

import threading
from collections.abc import Sequence
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.skills.skill import SkillProblem


class SkillNotFoundError(ToolError):
    """Raised when no skill has the name; it carries the nearest names.

    A file that would be the skill, if it were valid, is named with its problem.
    """

    def __init__(self, name: str, suggestions: Sequence[str], broken: SkillProblem | None = None) -> None:
        names = ", ".join(suggestions)
        hint = f"Did you mean: {names}?" if names else "Find the right name with skill_search."
        reason = "."
        if broken is not None:
            reason = f". {broken.path} cannot be used, because {broken.message}."
            hint = f"{broken.fix} skill_diagnostics has all that is wrong."
        super().__init__(
            ErrorCode.NOT_FOUND,
            f"Skill not found: {name!r}{reason}",
            hint=hint,
            details={"suggestions": list(suggestions)},
        )


class AmbiguousSkillError(ToolError):
    """Raised when a short name matches several skills; only a full name is unique."""

    def __init__(self, name: str, matches: Sequence[str]) -> None:
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            f"{name!r} is ambiguous, {len(matches)} skills have it: {', '.join(matches)}.",
            hint=f"Use a full name, such as {matches[0]!r}.",
            details={"matches": list(matches)},
        )


class UnreadableSkillError(ToolError):
    """Raised when an existing skill cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            ErrorCode.INTERNAL,
            f"{path} cannot be read: {reason}.",
            hint="The server's log has the whole error; skill_diagnostics may know more.",
        )


class BundledFileError(ToolError):
    """Raised when a file of a skill is missing, too large, or outside the skill."""


_import_lock = threading.Lock()
"""Serializes the import: two threads that import the library at once can see it half
initialized."""


def preload_matcher() -> None:
    """Import the library before it is needed."""
    _load_matcher()


def find_similar(word: str, words: Sequence[str], *, min_percent: float, limit: int) -> list[str]:
    """Return the words with at least this similarity in per cent, the most similar first."""
    process, ratio = _load_matcher()
    matches = process.extract(word, words, scorer=ratio, score_cutoff=min_percent, limit=limit)
    return [candidate for candidate, _score, _index in matches]


def _load_matcher() -> tuple[Any, Any]:
    with _import_lock:
        from rapidfuzz import fuzz, process  # noqa: PLC0415 - only for a word that is wrong

        return process, fuzz.ratio
