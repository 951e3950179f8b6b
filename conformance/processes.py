"""Child processes that always end: in time, with us, or by force."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

START = 60.0
"""Seconds for a listener to say where it listens; the machine may be busy."""

GRACE = 15.0
"""Seconds for a listener to end after its stdin does. A relay ends its own children first."""


class Broken(Exception):  # noqa: N818 - it says what the process is
    """A process did not start, or did not end when it should have."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a process left behind."""

    code: int
    stdout: str
    stderr: str


async def finished(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    limit: float,
) -> Ended:
    """Run a command to its end.

    Raises:
        Broken: it took longer than `limit` seconds, or could not be started.
    """
    process = await _start(command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=env, cwd=cwd)
    try:
        async with asyncio.timeout(limit):
            stdout, stderr = await process.communicate()
    except TimeoutError:
        raise Broken(f"{_shown(command)} was still running after {limit:g} s") from None
    finally:
        await _end(process)
    assert process.returncode is not None
    return Ended(process.returncode, _text(stdout), _text(stderr))


@asynccontextmanager
async def listening(command: Sequence[str], log: Path) -> AsyncIterator[str]:
    """The address of a listener (see `conformance.listening`) while the block runs.

    Raises:
        Broken: it ended or kept silent instead of naming its address.
    """
    with log.open("wb") as stderr:
        process = await _start(command, stdin=PIPE, stdout=PIPE, stderr=stderr.fileno())
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = b""
            with suppress(TimeoutError):
                address = await asyncio.wait_for(process.stdout.readline(), START)
            if not address:
                raise Broken(f"{_shown(command)} did not start; see {log}")
            yield _text(address).strip()
        finally:
            process.stdin.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), GRACE)
            await _end(process)


async def _start(
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
            start_new_session=True,  # Ctrl-C is ours to handle, and a group can be ended whole
        )
    except OSError as error:
        raise Broken(f"{_shown(command)} could not be started: {error}") from None


async def _end(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _shown(command: Sequence[str]) -> str:
    return f"`{' '.join([Path(command[0]).name, *command[1:]])}`"


def _text(output: bytes) -> str:
    return output.decode(errors="replace")
