"""The `cleats client-config` command: the block that registers this server in each client."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from cleats.cli import completion
from cleats.cli.output import echo_json, format_columns

SERVER_NAME = "cleats"
SYSTEM_NAMES = {"darwin": "macOS", "linux": "Linux", "win32": "Windows"}


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The command line with which a client starts the server."""

    command: str
    args: tuple[str, ...]

    @property
    def argv(self) -> list[str]:
        """The command and its arguments as one list."""
        return [self.command, *self.args]

    def build_entry(self, *, with_type: bool = False) -> dict[str, Any]:
        """Build the object that describes a server; some clients require its transport type."""
        type_field = {"type": "stdio"} if with_type else {}
        return {**type_field, "command": self.command, "args": list(self.args)}


BlockRenderer = Callable[[ServerCommand], str]


def _make_json_renderer(key: str, *, with_type: bool = False) -> BlockRenderer:
    def render_block(server_command: ServerCommand) -> str:
        body = {key: {SERVER_NAME: server_command.build_entry(with_type=with_type)}}
        return json.dumps(body, indent=2, ensure_ascii=False)

    return render_block


def _render_toml(server_command: ServerCommand) -> str:
    args = ", ".join(map(_quote_toml_string, server_command.args))
    command = _quote_toml_string(server_command.command)
    return f"[mcp_servers.{SERVER_NAME}]\ncommand = {command}\nargs = [{args}]"


def _quote_toml_string(text: str) -> str:
    """Quote a basic TOML string; its escapes are those of JSON, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A supported client: its files, the format of its block, and its command to add a server."""

    title: str
    files: Mapping[str, str]
    render_block: BlockRenderer
    add_command: tuple[str, ...] = ()
    after: str


CLIENTS_BY_NAME: Mapping[str, McpClient] = {
    "claude-code": McpClient(
        title="Claude Code",
        files={"for everyone in the project": ".mcp.json"},
        render_block=_make_json_renderer("mcpServers", with_type=True),
        add_command=("claude", "mcp", "add", "--scope", "user", SERVER_NAME, "--"),
        after="`/mcp` in a session shows whether it is connected.",
    ),
    "claude-desktop": McpClient(
        title="Claude Desktop",
        files={
            "Linux": "~/.config/Claude/claude_desktop_config.json",
            "macOS": "~/Library/Application Support/Claude/claude_desktop_config.json",
            "Windows": r"%APPDATA%\Claude\claude_desktop_config.json",
        },
        render_block=_make_json_renderer("mcpServers"),
        after="Quit Claude Desktop and start it again.",
    ),
    "cursor": McpClient(
        title="Cursor",
        files={"for you": "~/.cursor/mcp.json", "for the project": ".cursor/mcp.json"},
        render_block=_make_json_renderer("mcpServers"),
        after="Restart Cursor; Customize in its sidebar lists it under MCPs.",
    ),
    "codex": McpClient(
        title="Codex",
        files={"for you": "~/.codex/config.toml", "for a trusted project": ".codex/config.toml"},
        render_block=_render_toml,
        add_command=("codex", "mcp", "add", SERVER_NAME, "--"),
        after="`/mcp` in a session shows whether it is connected.",
    ),
    "vscode": McpClient(
        title="VS Code",
        files={"for the project": ".vscode/mcp.json", "for you": "MCP: Open User Configuration"},
        render_block=_make_json_renderer("servers", with_type=True),
        after="Press Start above the entry in the file.",
    ),
    "gemini": McpClient(
        title="Gemini CLI",
        files={"for you": "~/.gemini/settings.json", "for the project": ".gemini/settings.json"},
        render_block=_make_json_renderer("mcpServers"),
        add_command=("gemini", "mcp", "add", "--scope", "user", SERVER_NAME),
        after="`/mcp` in a session shows whether it is connected.",
    ),
    "zed": McpClient(
        title="Zed",
        files={"for you": "~/.config/zed/settings.json", "for the project": ".zed/settings.json"},
        render_block=_make_json_renderer("context_servers"),
        after="The settings of the agent panel list it; a green dot means that it runs.",
    ),
}


@click.command("client-config")
@click.argument("client", required=False, shell_complete=completion.make_completer(lambda: CLIENTS_BY_NAME))
@click.option(
    "--toolset",
    "toolsets",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.complete_toolsets,
    help="Serve only this one.",
)
@click.option(
    "--repo",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="The repository that it is for, wherever the client starts it.",
)
@click.option("--command", metavar="PATH", help="The `cleats` to start, if not this one.")
@click.option("--json", "as_json", is_flag=True, help="Print block, files and commands as JSON.")
def client_config(
    client: str | None, *, toolsets: tuple[str, ...], repo: str | None, command: str | None, as_json: bool
) -> None:
    """Print the block that registers this server in CLIENT; without one, list the clients.

    Only the block goes to stdout. Where it belongs is said on stderr, and nothing is changed:
    most of these files hold other servers too.

    Examples:
      cleats client-config                           the clients we know
      cleats client-config claude-code
      cleats client-config vscode > .vscode/mcp.json
      cleats client-config cursor --toolset code --toolset skills
      cleats client-config claude-desktop --repo ~/src/app
    """
    if toolsets:
        from cleats.cli.tools import check_toolsets  # noqa: PLC0415 - only for their names

        check_toolsets(toolsets)
    server_command = _build_server_command(command, [*toolsets, *(["--repo", repo] if repo else [])])
    if client is None:
        _print_clients(server_command, as_json=as_json)
        return
    if client not in CLIENTS_BY_NAME:
        client_names = ", ".join(CLIENTS_BY_NAME)
        raise click.UsageError(f"There is no client {client!r} here; there are: {client_names}.")
    selected_client = CLIENTS_BY_NAME[client]
    if as_json:
        echo_json(_describe_client(selected_client, server_command))
        return
    click.echo(_render_guidance(selected_client, server_command), err=True)
    click.echo(selected_client.render_block(server_command))


def _build_server_command(command: str | None, serve_arguments: Sequence[str]) -> ServerCommand:
    program_argv = [_resolve_command(command) or command] if command else find_running_program()
    return ServerCommand(program_argv[0], (*program_argv[1:], "serve", *serve_arguments))


def find_running_program() -> list[str]:
    """Return the command line that starts the current program from any folder, without PATH.

    Symbolic links are kept, because the link in a `bin` folder outlives its target.
    """
    script = _resolve_command(sys.argv[0])
    if script is not None and not script.endswith(".py"):
        return [script]
    return [sys.executable, "-m", SERVER_NAME]


def _resolve_command(command: str) -> str | None:
    path = shutil.which(command)
    return None if path is None else os.path.abspath(path)  # noqa: PTH100 - it follows no link


def _format_add_command(client: McpClient, server_command: ServerCommand) -> str:
    return shlex.join([*client.add_command, *server_command.argv]) if client.add_command else ""


def _render_guidance(client: McpClient, server_command: ServerCommand) -> str:
    lines = [f"{client.title}: put this into"]
    lines.append(format_columns([(path, scope) for scope, path in client.files.items()]))
    if client.add_command:
        lines += ["or let it do so itself:", f"  {_format_add_command(client, server_command)}"]
    return "\n".join([*lines, client.after, ""])


def _describe_client(client: McpClient, server_command: ServerCommand) -> dict[str, Any]:
    facts = {
        "title": client.title,
        "files": dict(client.files),
        "format": "toml" if client.render_block is _render_toml else "json",
        "block": client.render_block(server_command),
        "after": client.after,
    }
    return {**facts, "command": _format_add_command(client, server_command)} if client.add_command else facts


def _choose_first_file(files: Mapping[str, str]) -> str:
    """Return the file to look at first; some clients have one for each system."""
    return files.get(SYSTEM_NAMES.get(sys.platform, ""), next(iter(files.values())))


def _print_clients(server_command: ServerCommand, *, as_json: bool) -> None:
    if as_json:
        echo_json({name: _describe_client(client, server_command) for name, client in CLIENTS_BY_NAME.items()})
        return
    rows = [("CLIENT", "NAME", "FILE")]
    rows += [(name, client.title, _choose_first_file(client.files)) for name, client in CLIENTS_BY_NAME.items()]
    click.echo(format_columns(rows, indent=""))
    click.echo("\n`cleats client-config CLIENT` prints the block for one of them.", err=True)
