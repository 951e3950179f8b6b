"""Subcommands that people try first: the group runs the command that is meant, or suggests one."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

import click

COMMANDS_BY_GUESS: Final[Mapping[str, Mapping[str, str]]] = {
    "assets": {"check": "validate", "compare": "diff"},
    "cache": {"shrink": "gc", "clear": "clean", "remove": "clean"},
    "contract": {"compare": "diff"},
    "launch": {"check": "validate", "run": "start", "show": "status"},
    "skills": {"check": "validate", "find": "search", "show": "info", "create": "new"},
    "triage": {"import": "ingest", "show": "pack"},
}
"""Words that people try first, and the commands that they run, by group."""


class GuessingGroup(click.Group):
    """A group that also accepts the words that people try first."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return super().get_command(ctx, COMMANDS_BY_GUESS.get(self.name or "", {}).get(name, name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        unknown = not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None
        if unknown and (matches := get_close_matches(args[0], self.commands, n=1)):
            ctx.fail(f"Unknown command {args[0]!r}. Did you mean {matches[0]!r}?")
        return super().resolve_command(ctx, args)
