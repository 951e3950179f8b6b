"""The command: `python -m tests.engines`, which is `make engines`.

It installs real servers from package registries in a temporary folder: an S3 server built by Go, and OpenSearch from
Maven packages. The tests that otherwise use a fake run against the S3 server and one OpenSearch node, and the checks
of this folder also against a cluster of three nodes. Every server is stopped at the end.

Exit codes: 0 if every suite that can run here passed, with a line for each that cannot; 1 if a test failed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from tests.engines.opensearch_nodes import InstallError, install_opensearch
from tests.engines.s3_server import install_s3_server
from tests.support.object_store import PROGRAM_VARIABLE
from tests.support.opensearch_server import HOME_VARIABLE
from tests.support.paths import REPOSITORY_ROOT

OPENSEARCH_SUITES = (
    *(f"tests/toolsets/code/sharing/test_opensearch_{name}.py" for name in ("filters", "searching", "publishing")),
    "tests/engines/check_stand_in.py",
)
CLUSTER_SUITES = ("tests/engines/check_cluster.py",)
OBJECT_STORE_SUITES = ("tests/engines/check_object_store.py", "tests/toolsets/code/sharing/test_fleet.py")
CHECK_PATTERN = ("-o", "python_files=test_*.py check_*.py")
NOT_DATABASE = "not database"
"""Tests of the database need no object store."""


def main() -> int:
    """Return the exit code described in the module docstring."""
    with _make_folder() as folder:
        results = [_check_object_store(folder), _check_opensearch(folder)]
    return 0 if all(results) else 1


def _check_object_store(folder: Path) -> bool:
    """Return false if a test failed; true if all passed, or if they cannot run here."""
    try:
        _require_programs("go")
        print("S3: building the server", flush=True)
        program = install_s3_server(folder)
    except InstallError as error:
        print(f"S3: not run: {error}")
        return True
    environ = {**os.environ, PROGRAM_VARIABLE: str(program)}
    return _run_pytest("S3", (*OBJECT_STORE_SUITES, *CHECK_PATTERN, "-k", NOT_DATABASE), environ)


def _check_opensearch(folder: Path) -> bool:
    """Return false if a test failed; true if all passed, or if they cannot run here."""
    home = folder / "opensearch"
    try:
        _require_programs("java", "mvn", "bash")
        print("OpenSearch: installing", flush=True)
        install_opensearch(home)
    except InstallError as error:
        print(f"OpenSearch: not run: {error}")
        return True
    environ = {**os.environ, HOME_VARIABLE: str(home)}
    suites = (
        _run_pytest("OpenSearch, one node", (*OPENSEARCH_SUITES, *CHECK_PATTERN), environ),
        _run_pytest("OpenSearch, three nodes", (*CLUSTER_SUITES, *CHECK_PATTERN), environ),
    )
    return all(suites)


def _require_programs(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise InstallError(f"this machine lacks {' and '.join(missing)}")


@contextmanager
def _make_folder() -> Iterator[Path]:
    """Yield a temporary folder that the user of the nodes can read."""
    folder = Path(mkdtemp(prefix="cleats-engines-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_pytest(title: str, arguments: tuple[str, ...], environ: dict[str, str]) -> bool:
    print(f"{title}:", flush=True)
    argv = [sys.executable, "-m", "pytest", "-q", "--timeout=600", *arguments]
    return subprocess.run(argv, cwd=REPOSITORY_ROOT, env=environ, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
