"""Prompts: what a person, rather than a model, can ask a toolset for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cleats.contract.listing import Page


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """Something a person may fill in."""

    name: str
    description: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as a list shows it."""

    name: str
    description: str
    arguments: Sequence[PromptArgument] = ()


class Prompts(Protocol):
    """The prompts of one toolset."""

    async def list(self, after: str, limit: int) -> Page[Prompt]:
        """What there is, sorted by name."""

    async def get(self, name: str, arguments: Mapping[str, str]) -> str | None:
        """The text of a prompt, which speaks for the person; None when there is none."""
