"""The command: `python -m tests.engines`, which is `make engines`.

It installs real servers from package registries in a temporary folder: an S3 server built by Go, and OpenSearch from
Maven packages. The tests that otherwise use a fake run against the S3 server and one OpenSearch node, and the checks
of this folder also against a cluster of three nodes and on networks that fail. Every server is stopped at the end.

Exit codes: 0 if every suite that can run here passed, with a line for each that cannot; 1 if a test failed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.engines.costs import report_costs
from tests.engines.opensearch_nodes import InstallError, install_opensearch, make_node_folder
from tests.engines.s3_server import install_s3_server
from tests.support.object_store import PROGRAM_VARIABLE
from tests.support.opensearch_server import HOME_VARIABLE
from tests.support.paths import REPOSITORY_ROOT

SHARING_TESTS = "tests/toolsets/code/sharing"
CHECK_PATTERN = ("-o", "python_files=test_*.py check_*.py")
NOT_DATABASE = "not database"
"""Tests of the database need no object store."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Some tests, and the server that they need."""

    title: str
    server: str
    arguments: tuple[str, ...]


SUITES = {
    "s3": Suite(
        "S3", "s3", ("tests/engines/check_object_store.py", f"{SHARING_TESTS}/test_fleet.py", "-k", NOT_DATABASE)
    ),
    "one-node": Suite(
        "OpenSearch, one node",
        "opensearch",
        (
            *(f"{SHARING_TESTS}/test_opensearch_{name}.py" for name in ("filters", "searching", "publishing")),
            "tests/engines/check_fake_opensearch.py",
        ),
    ),
    "three-nodes": Suite(
        "OpenSearch, three nodes", "opensearch", ("tests/engines/check_kills.py", "tests/engines/check_upkeep.py")
    ),
    "networks": Suite("networks that fail", "any", ("-s", "tests/engines/check_networks.py")),
}


def main() -> int:
    """Return the exit code described in the module docstring."""
    options = _parse_options()
    chosen = [SUITES[name] for name in options.suites or SUITES]
    servers = {"opensearch"} if options.costs else {suite.server for suite in chosen}
    with make_node_folder() as folder:
        environ = {**os.environ}
        if servers & {"s3", "any"}:
            environ |= _install_object_store(folder)
        if servers & {"opensearch", "any"}:
            environ |= _install_opensearch(folder / "opensearch")
        if options.costs:
            if HOME_VARIABLE in environ:
                report_costs(Path(environ[HOME_VARIABLE]), options.costs)
            return 0
        results = [_run_suite(suite, environ) for suite in chosen]
    return 0 if all(results) else 1


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.engines")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"run only these: {', '.join(SUITES)}")
    parser.add_argument("--costs", metavar="CORPUS", help="instead: measure a cluster with a corpus of bench.code")
    options = parser.parse_args()
    unknown = set(options.suites).difference(SUITES)
    if unknown:
        parser.error(f"unknown suite {min(unknown)!r}")
    return options


def _install_object_store(folder: Path) -> dict[str, str]:
    """Return the variable that makes the tests use the real server; empty if it cannot be had."""
    try:
        _require_programs("go")
        print("S3: building the server", flush=True)
        started_at = time.monotonic()
        program = install_s3_server(folder)
    except InstallError as error:
        print(f"S3: not run: {error}")
        return {}
    print(f"S3: built after {time.monotonic() - started_at:.0f} s", flush=True)
    return {PROGRAM_VARIABLE: str(program)}


def _install_opensearch(home: Path) -> dict[str, str]:
    try:
        _require_programs("java", "mvn", "bash")
        print("OpenSearch: installing", flush=True)
        started_at = time.monotonic()
        install_opensearch(home)
    except InstallError as error:
        print(f"OpenSearch: not run: {error}")
        return {}
    print(f"OpenSearch: installed after {time.monotonic() - started_at:.0f} s", flush=True)
    return {HOME_VARIABLE: str(home)}


def _require_programs(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise InstallError(f"this machine lacks {' and '.join(missing)}")


def _run_suite(suite: Suite, environ: dict[str, str]) -> bool:
    """Return false if a test failed; true if all passed, or if the suite has no server here."""
    variables = {"s3": {PROGRAM_VARIABLE}, "opensearch": {HOME_VARIABLE}, "any": {PROGRAM_VARIABLE, HOME_VARIABLE}}
    if not variables[suite.server] & environ.keys():
        return True
    print(f"{suite.title}:", flush=True)
    started_at = time.monotonic()
    argv = [sys.executable, "-m", "pytest", "-q", "-rs", "--timeout=600", *CHECK_PATTERN, *suite.arguments]
    has_passed = subprocess.run(argv, cwd=REPOSITORY_ROOT, env=environ, check=False).returncode == 0
    result = "passed" if has_passed else "failed"
    print(f"{suite.title}: {result} after {time.monotonic() - started_at:.0f} s", flush=True)
    return has_passed


if __name__ == "__main__":
    sys.exit(main())
