"""Verification of a SQLite extension in a child process, which the extension may crash."""

import sys
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from cleats.system.processes import process
from cleats.toolsets.code.downloads.loading import ExtensionTrial, TrialStep

LOADER_MODULE: Final = "cleats.toolsets.code.downloads.loading"
TRIAL_TIMEOUT_SECONDS: Final = 30.0
"""Seconds for the whole trial; a library that takes longer is considered hung."""

_decode_step = msgspec.json.Decoder(TrialStep).decode


def report_skipped(reason: str) -> dict[str, dict[str, Any]]:
    """Return a report in which neither step was attempted."""
    return {name: {"attempted": False, "ok": False, "reason": reason} for name in ("load", "smoke")}


async def try_extension(trial: ExtensionTrial, grace: float) -> dict[str, dict[str, Any]]:
    """Load and use a library in a child process, and report the outcome of each step."""
    argv = [sys.executable, "-P", "-m", LOADER_MODULE]
    # The library must not see the environment; only Windows needs parts of it.
    environ = None if sys.platform == "win32" else {"PATH": "/usr/bin:/bin"}
    ending = f"it did not answer within {TRIAL_TIMEOUT_SECONDS:g} s"
    lines: list[bytes] = []
    with anyio.move_on_after(TRIAL_TIMEOUT_SECONDS):
        result = await process.run(
            argv,
            cwd=Path(trial.path).parent,
            env=environ,
            stdin=msgspec.json.encode(trial),
            grace=grace,
            on_output=lambda stream, line: lines.append(line) if stream == "stdout" else None,
        )
        ending = _describe_exit(result.exit_code)
    return _build_report(lines, ending)


def _build_report(lines: list[bytes], ending: str) -> dict[str, dict[str, Any]]:
    steps = {step.step: step.reason for line in lines if (step := _parse_step(line)) is not None}
    report = report_skipped("it was not loaded")
    for name in ("load", "smoke"):
        reason = steps.get(name, ending)
        report[name] = {"attempted": True, "ok": not reason, "reason": reason or None}
        if reason:
            break
    return report


def _parse_step(line: bytes) -> TrialStep | None:
    try:
        return _decode_step(line)
    except msgspec.MsgspecError:
        return None  # output of the library itself


def _describe_exit(code: int) -> str:
    return f"it ended the process with signal {-code}" if code < 0 else (f"it ended the process with exit code {code}")
