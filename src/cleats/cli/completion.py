"""Shell completion beyond what click provides.

Names come from the tables that the commands read, so every offered name is accepted. If the names
cannot be determined (a wrong setting, a package that does not load), nothing is offered, because an
error would garble a half-typed line.
"""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from cleats.settings import SettingError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def complete_paths(kind: str, incomplete: str) -> "list[CompletionItem]":
    """Let the shell complete paths of a kind: `file` or `dir`."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell needs it

    return [CompletionItem(incomplete, type=kind)]


def complete_files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Complete files and folders."""
    return complete_paths("file", incomplete)


def complete_folders(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Complete folders."""
    return complete_paths("dir", incomplete)


def make_completer(
    list_names: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Make a completer for the names of a table, which is read only when needed."""

    def complete_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        import logging  # noqa: PLC0415 - only a shell needs it

        logging.disable()  # commands report what is skipped
        try:
            return [name for name in list_names() if name.startswith(incomplete)]
        except SettingError:
            return []

    return complete_names


def _list_toolsets() -> Iterable[str]:
    from cleats import app  # noqa: PLC0415 - help needs none of it

    return app.list_toolset_names()


def _list_tools() -> Iterable[str]:
    from cleats import app  # noqa: PLC0415 - help needs none of it
    from cleats.cli.settings_loader import load_settings  # noqa: PLC0415

    return [tool.name for tool in app.build_registry(load_settings(os.environ), ())]


complete_toolsets = make_completer(_list_toolsets)
complete_tools = make_completer(_list_tools)
