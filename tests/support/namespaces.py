"""Whether the kernel lets this user create the namespaces that a fence needs, asked without the fence itself."""

import shutil
import subprocess
from functools import cache

import pytest

NAMESPACE_OPTIONS = ("--user", "--map-root-user", "--net", "--mount", "--pid", "--ipc", "--uts", "--fork")
PROBE_COMMAND = ("unshare", *NAMESPACE_OPTIONS, "mount", "-t", "proc", "proc", "/proc")


def skip_without_namespaces() -> None:
    """Skip the test if the kernel forbids namespaces."""
    if reason := _find_obstacle():
        pytest.skip(f"this machine cannot fence a command: {reason}")


@cache
def _find_obstacle() -> str:
    if not shutil.which("unshare"):
        return "the program unshare is not installed"
    completed = subprocess.run(PROBE_COMMAND, capture_output=True, text=True, check=False)
    return completed.stderr.strip() if completed.returncode else ""
