"""The `cleats client-config` command: the block that registers this server in each client."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from cleats.cli import tool_command
from cleats.cli.clients import CLIENTS_BY_NAME, LEAN_TOOLSETS, SERVER_NAME, McpClient, ServerCommand
from cleats.cli.output import echo_json, format_columns

_TOOLSET_OPTION: Any = {"multiple": True, "metavar": "NAME", "shell_complete": tool_command.complete_toolsets}
_FOLDER_TYPE = click.Path(exists=True, file_okay=False, resolve_path=True)
_REPO_HELP = "Default repository for calls that do not name one."
_TOOLSET_HELP = "Serve this toolset; repeatable; `all` serves every toolset. [default: explore, skills]"


def registration_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose what a registration serves."""
    for option in (
        click.option("--command", metavar="PATH", help="Path of the `cleats` command. [default: this one]"),
        click.option("--repo", metavar="DIR", type=_FOLDER_TYPE, help=_REPO_HELP),
        click.option("--read-only", is_flag=True, help="Omit every tool that changes something."),
        click.option("--tools", metavar="A,B", help="Serve only these tools, by name."),
        click.option("--toolset", "toolsets", help=_TOOLSET_HELP, **_TOOLSET_OPTION),
    ):
        command = option(command)
    return command


def choose_server(
    client: McpClient | None,
    *,
    toolsets: tuple[str, ...],
    tools: str | None,
    read_only: bool,
    repo: str | None,
    command: str | None,
) -> ServerCommand:
    """Return the command that a client starts, by the options of a registration.

    Raises:
        UsageError: A toolset does not exist.
    """
    if toolsets:
        from cleats.cli.tools import check_toolsets  # noqa: PLC0415 - only for their names

        check_toolsets(tuple(name for name in toolsets if name != "all"))
    program, *first_args = [_resolve_command(command) or command] if command else find_running_program()
    names = () if "all" in toolsets or (tools and not toolsets) else toolsets or LEAN_TOOLSETS
    options = [*(("--tools", tools) if tools else ()), *(("--read-only",) if read_only else ())]
    args = (*first_args, "serve", *names, *options, *(("--repo", repo) if repo else ()))
    return ServerCommand(program, args, client.env if client else {})


@click.command("client-config")
@click.argument("client", required=False, shell_complete=tool_command.make_completer(lambda: CLIENTS_BY_NAME))
@registration_options
@click.option("--json", "as_json", is_flag=True, help="Print block, files and commands as JSON.")
def client_config(client: str | None, *, as_json: bool, **choices: Any) -> None:
    """Print the configuration block for CLIENT, or list the clients.

    The block goes to stdout, and the file it belongs to is named on stderr. Nothing is changed; `cleats
    install CLIENT` writes the file. By default the block serves the toolsets explore and skills.

    Examples:
      cleats client-config                           list the clients
      cleats client-config claude-code
      cleats client-config vscode > .vscode/mcp.json
      cleats client-config cursor --toolset code --toolset skills
      cleats client-config claude-desktop --repo ~/src/app
    """
    if client is None:
        _print_clients(choices, as_json=as_json)
        return
    if client not in CLIENTS_BY_NAME:
        raise click.UsageError(f"Unknown client {client!r}. Known clients: {', '.join(CLIENTS_BY_NAME)}.")
    selected_client = CLIENTS_BY_NAME[client]
    server_command = choose_server(selected_client, **choices)
    if as_json:
        echo_json(_describe_client(selected_client, server_command))
        return
    click.echo(_render_guidance(selected_client, server_command), err=True)
    click.echo(selected_client.render_block(server_command))


def find_running_program() -> list[str]:
    """Return the command line that starts this program from anywhere; a link in a `bin` folder outlives its target."""
    script = _resolve_command(sys.argv[0])
    if script is not None and not script.endswith(".py"):
        return [script]
    return [sys.executable, "-m", SERVER_NAME]


def _resolve_command(command: str) -> str | None:
    path = shutil.which(command)
    return None if path is None else os.path.abspath(path)  # noqa: PTH100 - it follows no link


def _format_add_command(client: McpClient, server_command: ServerCommand) -> str:
    return shlex.join([*client.add_command, *server_command.argv]) if client.add_command else ""


def _list_files(client: McpClient) -> dict[str, str]:
    """Return the files of a client by what each is for."""
    names = {"user": "for you", "project": "for the project"}
    return {
        names[scope] if system == "any" else f"{names[scope]}, {system}": path
        for scope, by_system in client.files.items()
        for system, path in by_system.items()
    }


def _render_guidance(client: McpClient, server_command: ServerCommand) -> str:
    rows = [(path, purpose) for purpose, path in _list_files(client).items()]
    lines = [f"{client.title}: add this to", format_columns(rows)]
    if client.add_command:
        lines += ["or let the client do it:", f"  {_format_add_command(client, server_command)}"]
    return "\n".join([*lines, client.after, ""])


def _describe_client(client: McpClient, server_command: ServerCommand) -> dict[str, Any]:
    block = client.render_block(server_command)
    files = _list_files(client)
    facts = {"title": client.title, "files": files, "format": client.format, "block": block, "after": client.after}
    return {**facts, "command": _format_add_command(client, server_command)} if client.add_command else facts


def _print_clients(choices: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        described = {
            name: _describe_client(client, choose_server(client, **choices)) for name, client in CLIENTS_BY_NAME.items()
        }
        echo_json(described)
        return
    rows = [("CLIENT", "NAME", "FILE")]
    for name, client in CLIENTS_BY_NAME.items():
        rows.append((name, client.title, client.find_file(next(iter(client.files)))))
    click.echo(format_columns(rows, indent=""))
    click.echo("\n`cleats install CLIENT` registers it; `cleats client-config CLIENT` prints the block.", err=True)
