"""What a shell offers when Tab is pressed, beyond what click knows by itself.

Names come from the same tables that the commands read, so what is offered is what is taken. What
cannot be known now (a wrong setting, a package that does not load) is offered as nothing: a line
that is half typed is no place for an error.
"""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from cleats.settings import SettingError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def listed(kind: str, incomplete: str) -> "list[CompletionItem]":
    """What the shell lists itself: every `file`, or every `dir`."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell needs it

    return [CompletionItem(incomplete, type=kind)]


def files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Files and folders."""
    return listed("file", incomplete)


def folders(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Folders."""
    return listed("dir", incomplete)


def one_of(
    names: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """The names of a table that begin with what is typed; it is read only when it is needed."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        import logging  # noqa: PLC0415 - only a shell needs it

        logging.disable()  # what is skipped is told to those who run a command
        try:
            return [name for name in names() if name.startswith(incomplete)]
        except SettingError:
            return []

    return complete


def _toolsets() -> Iterable[str]:
    from cleats import app  # noqa: PLC0415 - help needs none of it

    return app.names()


def _tools() -> Iterable[str]:
    from cleats import app  # noqa: PLC0415 - help needs none of it
    from cleats.cli.config import load  # noqa: PLC0415

    return [tool.name for tool in app.catalogue(load(os.environ), ())]


toolsets = one_of(_toolsets)
tools = one_of(_tools)
