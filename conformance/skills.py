"""The suite's scenarios for the skills extension (SEP-2640), against the real skills toolset.

They are in none of the suite's lists, so they are run one by one, at the revision that the
extension is written for. `python -m conformance.skills` serves the skills of this folder over
HTTP; over stdio it is `cleats serve skills` behind the relay.
"""

import asyncio
import json
import shutil
import sys
from pathlib import Path

from conformance.exclusions import HTTP, STDIO
from conformance.npm import Tools
from conformance.processes import Broken, finished, listening
from conformance.report import Report
from conformance.suite import Check, Scenario
from conformance.verdict import judge

FOLDER = Path(__file__).parent / "skill_files"
SCENARIOS = [f"sep-2640-skills-{part}" for part in ("enumeration", "manifest", "directory")]
SERVE = (sys.executable, "-m", "cleats", "serve", "skills", "--skill-dir", str(FOLDER))
ONLY = ("--include", "root:custom")
"""Not those of whoever runs this."""

LISTENERS = {
    HTTP: (sys.executable, "-m", "conformance.skills"),
    STDIO: (sys.executable, "-m", "conformance.relay", *SERVE, *ONLY),
}
LIMIT = 120.0


async def conform(report: Report, tools: Tools) -> None:
    """Run the scenarios over both transports and add what they found."""
    for transport, command in LISTENERS.items():
        title = f"{transport} skills"
        log = tools.home / "logs" / f"skills-{transport}.txt"
        log.parent.mkdir(exist_ok=True)
        try:
            async with listening(command, log) as url:
                found = [await _scenario(tools, url, name, transport) for name in SCENARIOS]
        except Broken as error:
            report.wrong.append(f"{title}: {error}")
            continue
        report.suite[title] = judge(found, {})


async def _scenario(tools: Tools, url: str, name: str, transport: str) -> Scenario:
    out = tools.home / "results" / f"{transport}-{name}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = [tools.suite, "server", "--url", url, "--scenario", name, "-o", str(out)]
    await finished(command, env=tools.env, limit=LIMIT)
    checks = [
        Check(raw["id"], raw["status"], str(raw.get("errorMessage", "")))
        for file in out.glob("*/checks.json")
        for raw in json.loads(file.read_text())
    ]
    return Scenario(name, scored=False, checks=checks)


async def _serve() -> None:
    from cleats import app  # noqa: PLC0415
    from cleats.runtime.vitals import Vitals  # noqa: PLC0415
    from cleats.settings import Settings  # noqa: PLC0415
    from conformance.listening import PATH, listen  # noqa: PLC0415

    settings = Settings(telemetry="off", log_level="warning", skill_dirs=(FOLDER,))
    vitals = Vitals()
    served = app.toolsets(settings, ["skills"], vitals)
    async with app.mcp_server(settings, served, vitals) as server:
        await listen(server.streamable_http_app(streamable_http_path=PATH))


if __name__ == "__main__":
    asyncio.run(_serve())
