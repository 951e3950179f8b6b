"""The command: `python -m tests.engines`, which is `make engines`.

It installs real servers from package registries in a temporary folder, runs the suites of OpenSearch against one
node, and the checks of this folder against a cluster of three nodes. Every server is stopped at the end.

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
from tests.support.opensearch_server import HOME_VARIABLE
from tests.support.paths import REPOSITORY_ROOT

OPENSEARCH_SUITES = tuple(
    f"tests/toolsets/code/sharing/test_opensearch_{name}.py"
    for name in ("filters", "searching", "publishing", "servers")
)
CHECKS = ("tests/engines", "-o", "python_files=check_*.py")


def main() -> int:
    """Return the exit code described in the module docstring."""
    missing = [program for program in ("java", "mvn", "bash") if shutil.which(program) is None]
    if missing:
        print(f"OpenSearch: not run, because this machine lacks {' and '.join(missing)}")
        return 0
    with _make_folder() as folder:
        home = folder / "opensearch"
        print("OpenSearch: installing", flush=True)
        try:
            install_opensearch(home)
        except InstallError as error:
            print(f"OpenSearch: not run, because its packages cannot be installed: {error}")
            return 0
        environ = {**os.environ, HOME_VARIABLE: str(home)}
        results = [
            _run_pytest("OpenSearch, one node", OPENSEARCH_SUITES, environ),
            _run_pytest("OpenSearch, three nodes", CHECKS, environ),
        ]
    return 0 if all(results) else 1


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
