"""Whether an extension of SQLite is there and works; tried in a process that it may crash."""

import sys
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from cleats.runtime import process
from cleats.toolsets.code.downloads.loading import Step, Trial

MODULE: Final = "cleats.toolsets.code.downloads.loading"
PATIENCE: Final = 30.0
"""Seconds for all of it; a library that takes longer hangs."""

_step = msgspec.json.Decoder(Step).decode


def untried(reason: str) -> dict[str, dict[str, Any]]:
    """The two steps, not taken."""
    return {
        "load": {"attempted": False, "ok": False, "reason": reason},
        "smoke": {"attempted": False, "ok": False, "reason": reason},
    }


async def tried(trial: Trial, grace: float) -> dict[str, dict[str, Any]]:
    """Load a library and use it, in another process; how far that went."""
    argv = [sys.executable, "-P", "-m", MODULE]
    # Whatever the environment holds is none of the library's business; Windows needs some of it.
    environ = None if sys.platform == "win32" else {"PATH": "/usr/bin:/bin"}
    ending = f"it did not answer within {PATIENCE:g} s"
    lines: list[bytes] = []
    with anyio.move_on_after(PATIENCE):
        done = await process.run(
            argv,
            cwd=Path(trial.path).parent,
            env=environ,
            stdin=msgspec.json.encode(trial),
            grace=grace,
            on_output=lambda stream, line: lines.append(line) if stream == "stdout" else None,
        )
        ending = _ending(done.exit_code)
    return _report(lines, ending)


def _report(lines: list[bytes], ending: str) -> dict[str, dict[str, Any]]:
    steps = {step.step: step.reason for line in lines if (step := _read(line)) is not None}
    report = untried("it was not loaded")
    for name in ("load", "smoke"):
        reason = steps.get(name, ending)
        report[name] = {"attempted": True, "ok": not reason, "reason": reason or None}
        if reason:
            break
    return report


def _read(line: bytes) -> Step | None:
    try:
        return _step(line)
    except msgspec.MsgspecError:
        return None  # a library has something to say


def _ending(code: int) -> str:
    return (
        f"it ended the process with signal {-code}"
        if code < 0
        else (f"it ended the process with exit code {code}")
    )
