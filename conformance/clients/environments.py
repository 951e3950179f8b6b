"""The Python environments of the agents on libraries: one for each file in `requirements/`, locked with hashes.

To renew them, run `uv pip compile --universal --python-version 3.11 --generate-hashes --no-header
--no-emit-index-url --upgrade NAME.in -o NAME.txt` there.
"""

import os
import sys
from hashlib import sha256
from pathlib import Path

from conformance.npm import INSTALL_FOLDER, INSTALL_TIMEOUT_SECONDS, READY_FILE_NAME, OfflineError
from conformance.processes import BrokenProcessError, run_command

REQUIREMENTS_FOLDER = Path(__file__).parent / "requirements"
ENVIRONMENTS_FOLDER = INSTALL_FOLDER / "python"

# Without --no-compile the install takes twice as long; the files that run are compiled then.
PIP_ARGUMENTS = ("install", "--quiet", "--disable-pip-version-check", "--no-compile", "--require-hashes", "-r")


async def install_environment(name: str) -> Path:
    """Return the folder of an environment's programs, installed now if it is missing.

    Raises:
        OfflineError: It cannot be installed here.
    """
    requirements = REQUIREMENTS_FOLDER / f"{name}.txt"
    folder = ENVIRONMENTS_FOLDER / name
    ready = folder / READY_FILE_NAME
    digest = sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if not ready.exists() or ready.read_text() != digest:
        folder.mkdir(parents=True, exist_ok=True)
        await _run_python([sys.executable, "-m", "venv", "--clear", str(folder)])
        await _run_python([str(folder / "bin" / "python"), "-m", "pip", *PIP_ARGUMENTS, str(requirements)])
        ready.write_text(digest)
    return folder / "bin"


def read_version(name: str, package: str) -> str:
    """Return the version of a package that an environment is locked to."""
    lines = (REQUIREMENTS_FOLDER / f"{name}.txt").read_text().splitlines()
    return next(line.split("==")[1].split()[0] for line in lines if line.startswith(f"{package}=="))


async def _run_python(command: list[str]) -> None:
    try:
        completed = await run_command(command, env=os.environ, limit=INSTALL_TIMEOUT_SECONDS)
    except BrokenProcessError as error:
        raise OfflineError(str(error)) from None
    if completed.code != 0:
        raise OfflineError(f"{' '.join(command[2:4])} failed: {completed.stderr.strip()[-300:]}")
