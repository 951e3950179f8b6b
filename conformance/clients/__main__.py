"""The command: `python -m conformance.clients [NAME...]`, also available as `make clients`.

It runs real agent clients against a scripted model on this machine. Each is registered with what
`cleats install` writes, in a home folder of its own, and works on a repository without an index.
The model calls tools and judges what it is shown: the tools with the descriptions of their
arguments (at once, or by the client's search for tools), answers of find_code, grep_code and skill,
errors with their hints, a full answer, one of 8,000 tokens, and an index that is built meanwhile.
Clients that also have a file for a project are run a second time with that.

A client that fails is run once more, alone, and that result counts. No client reaches another host:
the model is their proxy, too, and refuses. Everything they sent is in `.conformance/clients/sessions/`.

Exit codes: 0 if everything is as it should be or npm or the network is missing, 1 if something is
not, 2 if the clients could not be installed for another reason.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from conformance.clients.catalogue import AGENT_CLIENTS, SKIPPED_CLIENTS, AgentClient
from conformance.clients.environments import ENVIRONMENTS_FOLDER, install_environment, read_version
from conformance.clients.libraries import LIBRARY_AGENTS
from conformance.clients.matrix import ClientResult, render_matrix
from conformance.clients.project import create_project
from conformance.clients.script import FULL_SCRIPT, SHORT_SCRIPT
from conformance.clients.session import SessionPlan, run_session
from conformance.npm import (
    INSTALL_ARGUMENTS,
    INSTALL_FOLDER,
    OfflineError,
    ToolsNotInstalledError,
    install_pinned,
)

CLIENTS_FOLDER = Path(__file__).parent
PIN_FILES = (CLIENTS_FOLDER / "package.json", CLIENTS_FOLDER / "package-lock.json")
HOME_FOLDER = INSTALL_FOLDER / "clients"
CONCURRENT_CLIENTS = 2


async def run_clients(clients: Sequence[AgentClient]) -> list[ClientResult]:
    """Run the clients, a few at a time, and those that fail once more."""
    template = HOME_FOLDER / "template"
    create_project(template)
    turns = asyncio.Semaphore(CONCURRENT_CLIENTS)

    async def run_in_turn(client: AgentClient) -> ClientResult:
        async with turns:
            return await _run_client(client, template)

    results = await asyncio.gather(*(run_in_turn(client) for client in clients))
    for number, (client, result) in enumerate(zip(clients, results, strict=True)):
        if problems := result.list_problems():
            _print_status("\n".join([*problems, f"trying {client.name} again, alone"]))
            results[number] = await _run_client(client, template)
            results[number].is_second_try = True
    return results


async def _run_client(client: AgentClient, template: Path) -> ClientResult:
    result = ClientResult(client.title, _read_version(client))
    for number, scope in enumerate(client.scopes):
        plan = SessionPlan(
            scope=scope,
            steps=SHORT_SCRIPT if number else FULL_SCRIPT,
            folder=HOME_FOLDER / "sessions" / f"{client.name}-{scope}",
            template=template,
            bin_folder=_find_bin_folder(client),
        )
        result.sessions[scope] = await run_session(client, plan)
    _print_status(f"{client.name}: {sum(session.seconds for session in result.sessions.values()):.0f} s")
    return result


def _read_version(client: AgentClient) -> str:
    if client.environment:
        return read_version(client.environment, client.package)
    return str(json.loads(PIN_FILES[0].read_text())["dependencies"][client.package])


def _find_bin_folder(client: AgentClient) -> Path:
    if client.environment:
        return ENVIRONMENTS_FOLDER / client.environment / "bin"
    return HOME_FOLDER / "node_modules" / ".bin"


async def _install_clients(clients: Sequence[AgentClient], skipped: dict[str, str]) -> list[AgentClient]:
    """Install what the clients need; return those that can be run, and add the others to `skipped`.

    Raises:
        ToolsNotInstalledError: The pins do not fit, which is a fault of ours.
    """
    problems: dict[str, str] = {}
    for environment in dict.fromkeys(client.environment for client in clients):
        try:
            if environment:
                await install_environment(environment)
            else:
                await install_pinned(HOME_FOLDER, PIN_FILES, INSTALL_ARGUMENTS)
        except OfflineError as error:
            problems[environment] = str(error)
    skipped |= {client.title: problems[client.environment] for client in clients if client.environment in problems}
    return [client for client in clients if client.environment not in problems]


def _print_status(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


async def main(names: Collection[str]) -> int:
    """Return the exit code described in the module docstring."""
    task = asyncio.current_task()
    assert task is not None
    # Clients are ended in `finally` blocks, which a plain SIGTERM would skip.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    skipped = dict(SKIPPED_CLIENTS)
    chosen = [client for client in (*AGENT_CLIENTS, *LIBRARY_AGENTS) if not names or client.name in names]
    _print_status("installing the agent clients, unless they are here")
    try:
        clients = await _install_clients(chosen, skipped)
    except ToolsNotInstalledError as error:
        _print_status(f"not run: {error}")
        return 2
    results = await run_clients(clients)
    print("\n".join(render_matrix(results, skipped)))
    return 1 if any(result.list_problems() for result in results) else 0


if __name__ == "__main__":
    try:
        code = asyncio.run(main(sys.argv[1:]))
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = 130
    sys.exit(code)
