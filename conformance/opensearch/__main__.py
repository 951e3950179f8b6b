"""The command: `python -m conformance.opensearch`, a part of `make conformance`.

OpenSearch describes its REST interface in a specification, from which the types of its official
JavaScript client are generated. Here every kind of request that publishing and searching send is
recorded with the fake cluster of the tests and checked by the TypeScript compiler against those
types: a setting, a parameter or a part of a query that the specification does not have is an error.
This does not show what a real cluster does with the requests.

Both come from npm in exact versions and are installed in `.conformance/opensearch/`.

Exit codes: 0 if everything fits, 1 if something does not, 2 if it could not be run.
"""

import asyncio
import sys
from pathlib import Path

from conformance.npm import INSTALL_FOLDER, INSTALL_TIMEOUT_SECONDS, ToolsNotInstalledError, install_pinned
from conformance.opensearch.requests import record_requests
from conformance.opensearch.typed import render_typescript
from conformance.processes import run_command

OPENSEARCH_FOLDER = Path(__file__).parent
PIN_FILES = (OPENSEARCH_FOLDER / "package.json", OPENSEARCH_FOLDER / "package-lock.json")
OPENSEARCH_INSTALL_FOLDER = INSTALL_FOLDER / "opensearch"
COMPILER_ARGUMENTS = (
    *("--noEmit", "--strict", "--skipLibCheck", "--target", "es2022"),
    *("--module", "nodenext", "--moduleResolution", "nodenext", "requests.ts"),
)


async def main() -> int:
    """Return the exit code described in the module docstring."""
    try:
        env = await install_pinned(OPENSEARCH_INSTALL_FOLDER, PIN_FILES)
    except ToolsNotInstalledError as error:
        print(f"not run: {error}", file=sys.stderr)
        return 2
    lines = render_typescript(await asyncio.to_thread(record_requests))
    (OPENSEARCH_INSTALL_FOLDER / "requests.ts").write_text("\n".join(lines) + "\n", "utf-8")
    compiler = str(OPENSEARCH_INSTALL_FOLDER / "node_modules" / ".bin" / "tsc")
    completed = await run_command(
        [compiler, *COMPILER_ARGUMENTS], env=env, cwd=OPENSEARCH_INSTALL_FOLDER, limit=INSTALL_TIMEOUT_SECONDS
    )
    print("\n".join(line[:300] for line in completed.stdout.splitlines()[:20]))
    checked = sum(line.startswith("export const") for line in lines)
    print(f"{checked} distinct requests: {'all fit' if completed.code == 0 else 'some do not fit'}")
    return 0 if completed.code == 0 else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
