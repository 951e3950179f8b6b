"""The `cleats install` command: write the registration of this server into a client's file."""

import difflib
import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import click

from cleats.cli import tool_command
from cleats.cli.client_config import choose_server, registration_options
from cleats.cli.clients import CLIENTS_BY_NAME, SERVER_NAME, McpClient, Scope, ServerCommand, render_toml_table
from cleats.cli.output import UnusableInput, echo_json
from cleats.system.atomic_files import replace_text

BACKUP_SUFFIX = ".before-cleats"
"""The suffix of the copy of a file as it was before the first change."""


@click.command()
@click.argument("client", shell_complete=tool_command.make_completer(lambda: CLIENTS_BY_NAME))
@click.option("--scope", type=click.Choice(["user", "project"]), help="Register for you, or for this project only.")
@click.option("--uninstall", is_flag=True, help="Remove the registration.")
@click.option("--dry-run", is_flag=True, help="Show the change without making it.")
@registration_options
@click.option("--json", "as_json", is_flag=True, help="Print the file and the change as JSON.")
def install(client: str, *, scope: Scope | None, uninstall: bool, dry_run: bool, as_json: bool, **choices: Any) -> None:
    """Register Cleats in the configuration file of CLIENT and show the change.

    The original file is kept with the suffix `.before-cleats`. Other servers in the file are not changed. If
    the file has comments, the block is printed instead of written. `cleats client-config` only prints the
    block.

    Examples:
      cleats install claude-code
      cleats install cursor --scope project --dry-run
      cleats install codex --toolset explore --toolset code
      cleats install gemini --uninstall
    """
    if client not in CLIENTS_BY_NAME:
        raise click.UsageError(f"Unknown client {client!r}. Known clients: {', '.join(CLIENTS_BY_NAME)}.")
    chosen = CLIENTS_BY_NAME[client]
    server = choose_server(chosen, **choices)
    path = find_file(chosen, scope)
    before = _read_text(path)
    after = update_entry(chosen, before, path, None if uninstall else server)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=2)
    change = "\n".join(lines)
    if change and not dry_run:
        _write_file(path, before, after)
    if as_json:
        echo_json({"client": client, "file": str(path), "changed": bool(change) and not dry_run, "diff": change})
        return
    click.echo(change or f"{path} needs no change.")
    if change and not dry_run:
        click.echo(f"{'Removed from' if uninstall else 'Registered in'} {chosen.title}. {chosen.after}", err=True)


def find_file(client: McpClient, scope: Scope | None) -> Path:
    """Return the file of a scope; without one, the first that the client has.

    Raises:
        UsageError: The client has no file for this scope.
    """
    wanted = scope or ("user" if "user" in client.files else "project")
    if wanted not in client.files:
        raise click.UsageError(f"{client.title} has no configuration file for one {wanted}.")
    return Path(client.find_file(wanted)).expanduser().absolute()


def update_entry(client: McpClient, text: str, path: Path, server: ServerCommand | None) -> str:
    """Return the text of a file with the entry of this server, or without it if no server is given.

    Raises:
        UnusableInput: The file cannot be rewritten without losing something.
    """
    if server is None and not text.strip():
        return text
    if client.format == "toml":
        return _replace_toml_table(text, render_toml_table(client.make_entry(server)) if server else "", path)
    document = _parse_document(client, text, path, server)
    servers = document.get(client.key)
    if client.format == "yaml":
        entries = [item for item in servers or [] if item.get("name") != SERVER_NAME]
        if server is None and entries == (servers or []):
            return text
        entries += [client.make_entry(server)] if server else []
        import yaml  # noqa: PLC0415 - one client has it

        return str(yaml.safe_dump({**document, client.key: entries}, sort_keys=False, allow_unicode=True))
    entries_by_name = dict(servers) if isinstance(servers, dict) else {}
    if server is not None:
        entries_by_name[SERVER_NAME] = client.make_entry(server)
    elif SERVER_NAME in entries_by_name:
        del entries_by_name[SERVER_NAME]
    else:
        return text
    return json.dumps({**document, client.key: entries_by_name}, indent=2, ensure_ascii=False) + "\n"


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{path} cannot be read: {error}.") from None


def _parse_document(client: McpClient, text: str, path: Path, server: ServerCommand | None) -> dict[str, Any]:
    try:
        document = _load_yaml(text) if client.format == "yaml" else json.loads(text or "{}")
    except ValueError:
        document = None
    has_comments = client.format == "yaml" and any(line.lstrip().startswith("#") for line in text.splitlines())
    if isinstance(document, dict) and not has_comments:
        return document
    block = (
        f"\nAdd this yourself:\n\n{client.render_block(server)}" if server else f"\nRemove {SERVER_NAME!r} yourself."
    )
    raise UnusableInput(f"{path} has comments or is not plain {client.format.upper()}, so it was left as it is.{block}")


def _load_yaml(text: str) -> Any:
    import yaml  # noqa: PLC0415 - one client has it

    try:
        return yaml.safe_load(text) or {"name": "Local", "version": "1.0.0", "schema": "v1"}
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _replace_toml_table(text: str, table: str, path: Path) -> str:
    """Return a TOML text with the table of this server replaced, added or removed; the rest is untouched."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnusableInput(f"{path} is not valid TOML ({error}), so it was left as it is.") from None
    header = f"[mcp_servers.{SERVER_NAME}"
    kept: list[str] = []
    is_ours = False
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            is_ours = line.strip().startswith((f"{header}]", f"{header}."))
        if not is_ours:
            kept.append(line)
    rest = "\n".join(kept).rstrip("\n")
    parts = [part for part in (rest, table) if part]
    return "\n\n".join(parts) + "\n" if parts else ""


def _write_file(path: Path, before: str, after: str) -> None:
    backup = path.with_name(path.name + BACKUP_SUFFIX)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if before and not backup.exists():
            shutil.copy2(path, backup)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        replace_text(path.resolve(), after)
        os.chmod(path, mode)  # noqa: PTH101 - follows links
    except OSError as error:
        raise UnusableInput(f"{path} cannot be written: {error.strerror or error}.") from None
