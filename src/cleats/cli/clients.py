"""`cleats client-config`: how each client wants to be told about a server."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from cleats.cli import completing
from cleats.cli.printing import columns, echo_json

NAME = "cleats"
SYSTEMS = {"darwin": "macOS", "linux": "Linux", "win32": "Windows"}


@dataclass(frozen=True, slots=True)
class Launch:
    """What a client has to start."""

    command: str
    args: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """The whole command line."""
        return [self.command, *self.args]

    def entry(self, *, typed: bool = False) -> dict[str, Any]:
        """The object that describes a server; some clients want its transport named."""
        kind = {"type": "stdio"} if typed else {}
        return {**kind, "command": self.command, "args": list(self.args)}


Block = Callable[[Launch], str]


def _json_under(key: str, *, typed: bool = False) -> Block:
    def block(launch: Launch) -> str:
        body = {key: {NAME: launch.entry(typed=typed)}}
        return json.dumps(body, indent=2, ensure_ascii=False)

    return block


def _toml(launch: Launch) -> str:
    args = ", ".join(map(_toml_string, launch.args))
    command = _toml_string(launch.command)
    return f"[mcp_servers.{NAME}]\ncommand = {command}\nargs = [{args}]"


def _toml_string(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for DEL, which JSON lets pass."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One row: where the client looks, in what shape, and its own command if it has one."""

    title: str
    files: Mapping[str, str]
    block: Block
    adder: tuple[str, ...] = ()
    after: str


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        title="Claude Code",
        files={"for everyone in the project": ".mcp.json"},
        block=_json_under("mcpServers", typed=True),
        adder=("claude", "mcp", "add", "--scope", "user", NAME, "--"),
        after="`/mcp` in a session shows whether it is connected.",
    ),
    "claude-desktop": Client(
        title="Claude Desktop",
        files={
            "Linux": "~/.config/Claude/claude_desktop_config.json",
            "macOS": "~/Library/Application Support/Claude/claude_desktop_config.json",
            "Windows": r"%APPDATA%\Claude\claude_desktop_config.json",
        },
        block=_json_under("mcpServers"),
        after="Quit Claude Desktop and start it again.",
    ),
    "cursor": Client(
        title="Cursor",
        files={"for you": "~/.cursor/mcp.json", "for the project": ".cursor/mcp.json"},
        block=_json_under("mcpServers"),
        after="Restart Cursor; Customize in its sidebar lists it under MCPs.",
    ),
    "codex": Client(
        title="Codex",
        files={"for you": "~/.codex/config.toml", "for a trusted project": ".codex/config.toml"},
        block=_toml,
        adder=("codex", "mcp", "add", NAME, "--"),
        after="`/mcp` in a session shows whether it is connected.",
    ),
    "vscode": Client(
        title="VS Code",
        files={"for the project": ".vscode/mcp.json", "for you": "MCP: Open User Configuration"},
        block=_json_under("servers", typed=True),
        after="Press Start above the entry in the file.",
    ),
    "gemini": Client(
        title="Gemini CLI",
        files={"for you": "~/.gemini/settings.json", "for the project": ".gemini/settings.json"},
        block=_json_under("mcpServers"),
        adder=("gemini", "mcp", "add", "--scope", "user", NAME),
        after="`/mcp` in a session shows whether it is connected.",
    ),
    "zed": Client(
        title="Zed",
        files={"for you": "~/.config/zed/settings.json", "for the project": ".zed/settings.json"},
        block=_json_under("context_servers"),
        after="The settings of the agent panel list it; a green dot means that it runs.",
    ),
}


@click.command("client-config")
@click.argument("client", required=False, shell_complete=completing.one_of(lambda: CLIENTS))
@click.option(
    "--toolset",
    "toolsets",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.toolsets,
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
    client: str | None,
    *,
    toolsets: tuple[str, ...],
    repo: str | None,
    command: str | None,
    as_json: bool,
) -> None:
    """Print the block that registers this server in CLIENT; without one, list the clients.

    Only the block goes to stdout. Where it belongs is said on stderr, and nothing is changed:
    most of these files hold other servers too.

    \b
    Examples:
      cleats client-config                           the clients we know
      cleats client-config claude-code
      cleats client-config vscode > .vscode/mcp.json
      cleats client-config cursor --toolset code --toolset skills
      cleats client-config claude-desktop --repo ~/src/app
    """  # noqa: D301 - click reads the backspace
    if toolsets:
        from cleats.cli.tools import check_toolsets  # noqa: PLC0415 - only for their names

        check_toolsets(toolsets)
    launch = _launch(command, [*toolsets, *(["--repo", repo] if repo else [])])
    if client is None:
        _list(launch, as_json=as_json)
        return
    if client not in CLIENTS:
        known = ", ".join(CLIENTS)
        raise click.UsageError(f"There is no client {client!r} here; there are: {known}.")
    chosen = CLIENTS[client]
    if as_json:
        echo_json(_facts(chosen, launch))
        return
    click.echo(_guidance(chosen, launch), err=True)
    click.echo(chosen.block(launch))


def _launch(command: str | None, given: Sequence[str]) -> Launch:
    words = [_located(command) or command] if command else running()
    return Launch(words[0], (*words[1:], "serve", *given))


def running() -> list[str]:
    """How to start the program that runs now, from any folder and without a PATH.

    Links are kept: the one in a `bin` folder outlives what it leads to.
    """
    script = _located(sys.argv[0])
    if script is not None and not script.endswith(".py"):
        return [script]
    return [sys.executable, "-m", NAME]


def _located(command: str) -> str | None:
    found = shutil.which(command)
    return None if found is None else os.path.abspath(found)  # noqa: PTH100 - it follows no link


def _adder(client: Client, launch: Launch) -> str:
    return shlex.join([*client.adder, *launch.words]) if client.adder else ""


def _guidance(client: Client, launch: Launch) -> str:
    lines = [f"{client.title}: put this into"]
    lines.append(columns([(path, where) for where, path in client.files.items()]))
    if client.adder:
        lines += ["or let it do so itself:", f"  {_adder(client, launch)}"]
    return "\n".join([*lines, client.after, ""])


def _facts(client: Client, launch: Launch) -> dict[str, Any]:
    facts = {
        "title": client.title,
        "files": dict(client.files),
        "format": "toml" if client.block is _toml else "json",
        "block": client.block(launch),
        "after": client.after,
    }
    return {**facts, "command": _adder(client, launch)} if client.adder else facts


def _first(files: Mapping[str, str]) -> str:
    """The file to look at first; some clients have one for each system."""
    return files.get(SYSTEMS.get(sys.platform, ""), next(iter(files.values())))


def _list(launch: Launch, *, as_json: bool) -> None:
    if as_json:
        echo_json({name: _facts(client, launch) for name, client in CLIENTS.items()})
        return
    rows = [("CLIENT", "NAME", "FILE")]
    rows += [(name, client.title, _first(client.files)) for name, client in CLIENTS.items()]
    click.echo(columns(rows, indent=""))
    click.echo("\n`cleats client-config CLIENT` prints the block for one of them.", err=True)
