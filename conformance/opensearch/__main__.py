"""The command: `python -m conformance.opensearch`, a part of `make conformance`.

OpenSearch describes its REST interface in a specification, from which the types of its official
JavaScript client are generated. Here every kind of request that publishing and searching send is
recorded, against the cluster of the tests, and checked by the TypeScript compiler against those
types: a setting, a parameter or a part of a query that the description does not have is an error.
That says nothing of what a real cluster does with them.

Both come from npm in exact versions and live in `.conformance/opensearch/`.

Exit codes: 0 when all fits, 1 when something does not, 2 when it could not be tried.
"""

import asyncio
import sys
from pathlib import Path

from conformance.npm import HOME, LIMIT, NotInstalled, provide
from conformance.opensearch.requests import recorded
from conformance.opensearch.typed import typed
from conformance.processes import finished

HERE = Path(__file__).parent
PINS = (HERE / "package.json", HERE / "package-lock.json")
PLACE = HOME / "opensearch"
COMPILE = (
    *("--noEmit", "--strict", "--skipLibCheck", "--target", "es2022"),
    *("--module", "nodenext", "--moduleResolution", "nodenext", "requests.ts"),
)


async def main() -> int:
    """The exit code; see above."""
    try:
        env = await provide(PLACE, PINS)
    except NotInstalled as error:
        print(f"not run: {error}", file=sys.stderr)
        return 2
    lines = typed(await asyncio.to_thread(recorded))
    (PLACE / "requests.ts").write_text("\n".join(lines) + "\n", "utf-8")
    compiler = str(PLACE / "node_modules" / ".bin" / "tsc")
    ended = await finished([compiler, *COMPILE], env=env, cwd=PLACE, limit=LIMIT)
    print("\n".join(line[:300] for line in ended.stdout.splitlines()[:20]))
    checked = sum(line.startswith("export const") for line in lines)
    print(f"{checked} distinct requests: {'all fit' if ended.code == 0 else 'some do not fit'}")
    return 0 if ended.code == 0 else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
