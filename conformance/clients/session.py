"""One session of a client: register Cleats, run the client with the scripted model, judge what the model saw."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cleats.system.processes import process
from conformance.clients.catalogue import AgentClient, SessionPlace
from conformance.clients.model import ScriptedModel, serve_model
from conformance.clients.script import (
    ScriptedSession,
    ScriptStep,
    judge_descriptions,
    judge_tools,
    require,
    shorten,
)

SESSION_TIMEOUT_SECONDS = 180.0
"""Seconds for a session, which takes ten to twenty; the machine may be busy."""

INSTALL_TIMEOUT_SECONDS = 30.0
CLEATS_COMMAND = str(Path(sys.executable).with_name("cleats"))
BACKUP_SUFFIX = ".before-cleats"
BASE_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(slots=True)
class SessionReport:
    """The result of a session: the problem of each check, empty if it passed."""

    checks: dict[str, str] = field(default_factory=dict)
    foreign_hosts: Sequence[str] = ()
    seconds: float = 0.0
    was_discovered: bool = False
    """True if the client showed only names of tools at first."""

    note: str = ""
    """The reason why the client did not end by itself."""

    def list_problems(self) -> list[str]:
        """Return everything that must not happen."""
        return [*([self.note] if self.note else []), *(f"{name}: {text}" for name, text in self.checks.items() if text)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """What to register and to call, and where."""

    scope: str
    steps: Sequence[ScriptStep]
    folder: Path
    template: Path
    bin_folder: Path


async def run_session(client: AgentClient, plan: SessionPlan) -> SessionReport:
    """Run one client in fresh folders."""
    shutil.rmtree(plan.folder, ignore_errors=True)
    home, project = plan.folder / "home", plan.folder / "project"
    home.mkdir(parents=True)
    shutil.copytree(plan.template, project)
    session = ScriptedSession(plan.steps)
    report = SessionReport()
    start_time = time.monotonic()
    with serve_model(ScriptedModel(session.choose_reply, plan.folder / "requests")) as model:
        place = SessionPlace(home, project, model.url)
        env = {**_build_env(place, plan.bin_folder), **client.env(place)}
        try:
            report.checks["install"] = await _install(client, plan.scope, place, env)
            async with asyncio.timeout(SESSION_TIMEOUT_SECONDS):
                for number, command in enumerate([*client.setup(place), client.command]):
                    argv = [str(plan.bin_folder / command[0]), *command[1:]]
                    # It ends with all its descendants: one client leaves a daemon behind.
                    completed = await process.run(argv, env=env, cwd=project)
                    (plan.folder / f"output-{number}.txt").write_bytes(completed.stdout + b"\n" + completed.stderr)
        except TimeoutError:
            report.note = f"was still running after {SESSION_TIMEOUT_SECONDS:g} s"
        except process.StartError as error:
            report.note = str(error)
        report.checks["uninstall"] = await _uninstall(client, plan.scope, place, env)
    report.seconds = time.monotonic() - start_time
    report.foreign_hosts = sorted(model.foreign_hosts)
    report.was_discovered = session.was_discovered
    report.checks |= {"tools": judge_tools(session), "arguments": judge_descriptions(session)}
    for number, step in enumerate(plan.steps):
        answer = session.answers[number] if number < len(session.answers) else None
        report.checks[step.title] = "not called" if answer is None else _judge_answer(client, step, answer)
    return report


def _build_env(place: SessionPlace, bin_folder: Path) -> Mapping[str, str]:
    temporary = place.home / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        "PATH": os.pathsep.join([str(bin_folder), BASE_PATH]),
        "HOME": str(place.home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "HTTP_PROXY": place.model_url,
        "HTTPS_PROXY": place.model_url,
        "NO_PROXY": "127.0.0.1,localhost",
        "NODE_USE_ENV_PROXY": "1",
    }


async def _install(client: AgentClient, scope: str, place: SessionPlace, env: Mapping[str, str]) -> str:
    """Register Cleats as a user does, and return the problem if something is wrong."""
    settings = client.settings(place)
    for name, text in settings.items():
        path = place.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    change = await _run_install(client, scope, place, env)
    if "+++ " not in change:
        return shorten(change)
    written = Path(change.splitlines()[0].removeprefix("--- "))
    original = next((text for name, text in settings.items() if place.home / name == written), None)
    backup = written.with_name(written.name + BACKUP_SUFFIX)
    if original is not None and (not backup.exists() or backup.read_text() != original):
        return "the file as it was before is not kept"
    return ""


async def _uninstall(client: AgentClient, scope: str, place: SessionPlace, env: Mapping[str, str]) -> str:
    """Take the registration back, from a file that the client may have rewritten since."""
    change = await _run_install(client, scope, place, env, "--uninstall")
    again = await _run_install(client, scope, place, env, "--uninstall")
    return "" if "+++ " in change and "needs no change" in again else shorten(change + again)


async def _run_install(
    client: AgentClient, scope: str, place: SessionPlace, env: Mapping[str, str], *options: str
) -> str:
    command = [CLEATS_COMMAND, "install", client.registered_as or client.name, "--scope", scope, *options]
    async with asyncio.timeout(INSTALL_TIMEOUT_SECONDS):
        completed = await process.run(command, env=env, cwd=place.project)
    return (completed.stdout if completed.exit_code == 0 else completed.stderr).decode()


def _judge_answer(client: AgentClient, step: ScriptStep, answer: str) -> str:
    if step.title == "hint" and client.wrong_argument_answer:
        return require(client.wrong_argument_answer)(answer)
    return step.judge(answer)
