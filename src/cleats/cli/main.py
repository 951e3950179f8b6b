"""The `cleats` command. Each subcommand is imported when it is used, so that help is instant."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import click

from cleats.cli.config import load
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.settings import SettingError


class Entry(NamedTuple):
    """Where a command lives and what the overview says of it."""

    module: str
    about: str


COMMANDS: Mapping[str, Entry] = {
    "serve": Entry("cleats.cli.serve", "Serve toolsets to an agent over stdio."),
    "tools": Entry("cleats.cli.tools", "Show the tools this server has."),
    "call": Entry("cleats.cli.call", "Call one tool and print its answer."),
    "contract": Entry("cleats.cli.contract", "Snapshot, compare and check tool contracts."),
    "doctor": Entry("cleats.cli.doctor", "Say what is installed, what is missing, how to get it."),
    "client-config": Entry("cleats.cli.clients", "Print the block that registers this server."),
}


class Commands(click.Group):
    """A group that knows its commands by name before it imports them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        entry = COMMANDS.get(name)
        if entry is None:
            return None
        module = import_module(entry.module)
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.about) for name, entry in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    TOOLING_VERSION, message=f"cleats {TOOLING_VERSION} (contract {SCHEMA_VERSION})"
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """The tool server for coding agents.

    \b
    Try it:        cleats tools
                   cleats call check_status
    Register it:   cleats client-config claude-code
    Set it up:     cleats doctor

    Settings come from the environment (CLEATS_*), .cleats.toml in the repository and your own
    configuration file; `cleats COMMAND --help` explains each command.
    """
    try:
        ctx.obj = load(os.environ)
    except SettingError as error:
        raise click.UsageError(str(error)) from None


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(cli.main(prog_name="cleats", standalone_mode=True))


if __name__ == "__main__":
    main()
