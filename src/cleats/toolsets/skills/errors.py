"""How asking for a skill can fail. Each error owns its words; the dispatcher carries them."""

from collections.abc import Sequence

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.skills.skill import Problem


class SkillNotFoundError(ToolError):
    """Raised when no skill has the name; it carries the nearest names.

    A file that would be the skill, if it were right, is named with what is wrong with it.
    """

    def __init__(
        self, name: str, suggestions: Sequence[str], broken: Problem | None = None
    ) -> None:
        near = ", ".join(suggestions)
        hint = f"Did you mean: {near}?" if near else "Find the right name with skill_search."
        why = "."
        if broken is not None:
            why = f". {broken.path} cannot be used, because {broken.message}."
            hint = f"{broken.fix} skill_diagnostics has all that is wrong."
        super().__init__(
            ErrorCode.NOT_FOUND,
            f"Skill not found: {name!r}{why}",
            hint=hint,
            details={"suggestions": list(suggestions)},
        )


class AmbiguousSkillError(ToolError):
    """Raised when a short name fits several skills; only a full name will do."""

    def __init__(self, name: str, matches: Sequence[str]) -> None:
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            f"{name!r} is ambiguous, {len(matches)} skills have it: {', '.join(matches)}.",
            hint=f"Use a full name, such as {matches[0]!r}.",
            details={"matches": list(matches)},
        )


class UnreadableSkillError(ToolError):
    """Raised when a skill that is there cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            ErrorCode.INTERNAL,
            f"{path} cannot be read: {reason}.",
            hint="The server's log has the whole error; skill_diagnostics may know more.",
        )


class BundledFileError(ToolError):
    """Raised when a file of a skill is not there, is too large, or is not the skill's."""
