"""The gates there are, in the order they run. A profile lists the ones it wants, by name."""

from collections.abc import Iterable
from importlib import import_module

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.gates.model import Gate

NAMES = (
    "schema",
    "allowed_paths",
    "budgets",
    "conflict_markers",
    "secrets",
    "front_matter",
    "template_tokens",
    "markdown_lint",
    "hugo_config",
    "hugo_build",
    "internal_links",
    "external_links",
    "snippet_syntax",
    "truth_lock",
    "consistency",
    "content_distribution",
)
"""The cheap ones first, and the build before the links, which look into what it made."""


def load(name: str) -> Gate:
    """The gate of this name. Its module is imported now: most runs need only some of them."""
    gate: Gate = import_module(f"cleats.toolsets.launch.gates.{name}").GATE
    return gate


def chosen(names: Iterable[str]) -> list[Gate]:
    """The gates of a profile, in our order.

    Raises:
        ToolError: SCHEMA_VALIDATION_FAILED, a name is none of a gate.
    """
    wanted = set(names)
    if unknown := sorted(wanted - set(NAMES)):
        raise ToolError(
            ErrorCode.SCHEMA_VALIDATION_FAILED,
            f"there is no gate {unknown[0]!r}",
            details={"unknown": unknown, "known": list(NAMES)},
        )
    return [load(name) for name in NAMES if name in wanted]
