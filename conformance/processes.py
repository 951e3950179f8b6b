"""Child processes that always end: in time, with this process, or by force."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

START_TIMEOUT_SECONDS = 60.0
"""Seconds for a listener to print its address; the machine may be busy."""

EXIT_GRACE_SECONDS = 15.0
"""Seconds for a listener to exit after its stdin is closed. A relay first ends its own children."""


class BrokenProcessError(Exception):
    """A process that did not start, or did not end when it should have."""


@dataclass(frozen=True, slots=True)
class FinishedProcess:
    """The exit code and the output of a process."""

    code: int
    stdout: str
    stderr: str


async def run_command(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    limit: float,
) -> FinishedProcess:
    """Run a command to its end.

    Raises:
        BrokenProcessError: It took longer than `limit` seconds, or could not be started.
    """
    process = await _spawn(command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=env, cwd=cwd)
    try:
        async with asyncio.timeout(limit):
            stdout, stderr = await process.communicate()
    except TimeoutError:
        raise BrokenProcessError(f"{_format_command(command)} was still running after {limit:g} s") from None
    finally:
        await _kill_group(process)
    assert process.returncode is not None
    return FinishedProcess(process.returncode, _decode_output(stdout), _decode_output(stderr))


@asynccontextmanager
async def run_listener(command: Sequence[str], log: Path) -> AsyncIterator[str]:
    """Run a listener (see `conformance.listening`) and yield its address.

    Raises:
        BrokenProcessError: It ended or was silent instead of printing its address.
    """
    with log.open("wb") as stderr:
        process = await _spawn(command, stdin=PIPE, stdout=PIPE, stderr=stderr.fileno())
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = b""
            with suppress(TimeoutError):
                address = await asyncio.wait_for(process.stdout.readline(), START_TIMEOUT_SECONDS)
            if not address:
                raise BrokenProcessError(f"{_format_command(command)} did not start; see {log}")
            yield _decode_output(address).strip()
        finally:
            process.stdin.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), EXIT_GRACE_SECONDS)
            await _kill_group(process)


async def _spawn(
    command: Sequence[str],
    *,
    stdin: int,
    stdout: int,
    stderr: int,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd,
            start_new_session=True,  # Ctrl-C is handled here, and the whole group can be killed
        )
    except OSError as error:
        raise BrokenProcessError(f"{_format_command(command)} could not be started: {error}") from None


async def _kill_group(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _format_command(command: Sequence[str]) -> str:
    return f"`{' '.join([Path(command[0]).name, *command[1:]])}`"


def _decode_output(output: bytes) -> str:
    return output.decode(errors="replace")
