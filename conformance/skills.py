"""The suite's scenarios for the skills extension (SEP-2640), against the real skills toolset.

They are not in the suite's lists, so they are run one by one, at the revision that the extension is
written for. `python -m conformance.skills` serves the skills of this folder over HTTP; over stdio
it is `cleats serve skills` behind the relay.
"""

import asyncio
import json
import shutil
import sys
from pathlib import Path

from cleats.settings import make_settings
from conformance.exclusions import HTTP_TRANSPORT, STDIO_TRANSPORT
from conformance.npm import ConformanceTools
from conformance.processes import BrokenProcessError, run_command, run_listener
from conformance.report import ConformanceReport
from conformance.suite import SuiteCheck, SuiteScenario
from conformance.verdict import judge_scenarios

SKILLS_FOLDER = Path(__file__).parent / "skill_files"
SKILL_SCENARIOS = [f"sep-2640-skills-{part}" for part in ("enumeration", "manifest", "directory")]
SERVE_COMMAND = (sys.executable, "-m", "cleats", "serve", "skills", "--skill-dir", str(SKILLS_FOLDER))
CUSTOM_ROOT_OPTIONS = ("--include", "root:custom")
"""Options that leave out the skills of the user who runs this."""

LISTENER_COMMANDS = {
    HTTP_TRANSPORT: (sys.executable, "-m", "conformance.skills"),
    STDIO_TRANSPORT: (sys.executable, "-m", "conformance.relay", *SERVE_COMMAND, *CUSTOM_ROOT_OPTIONS),
}
SCENARIO_TIMEOUT_SECONDS = 120.0


async def run_skill_scenarios(report: ConformanceReport, tools: ConformanceTools) -> None:
    """Run the scenarios over both transports and add their results to the report."""
    for transport, command in LISTENER_COMMANDS.items():
        title = f"{transport} skills"
        log = tools.home / "logs" / f"skills-{transport}.txt"
        log.parent.mkdir(exist_ok=True)
        try:
            async with run_listener(command, log) as url:
                scenarios = [await _run_scenario(tools, url, name, transport) for name in SKILL_SCENARIOS]
        except BrokenProcessError as error:
            report.errors.append(f"{title}: {error}")
            continue
        report.suite[title] = judge_scenarios(scenarios, {})


async def _run_scenario(tools: ConformanceTools, url: str, name: str, transport: str) -> SuiteScenario:
    out = tools.home / "results" / f"{transport}-{name}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = [tools.suite, "server", "--url", url, "--scenario", name, "-o", str(out)]
    await run_command(command, env=tools.env, limit=SCENARIO_TIMEOUT_SECONDS)
    checks = [
        SuiteCheck(raw["id"], raw["status"], str(raw.get("errorMessage", "")))
        for file in out.glob("*/checks.json")
        for raw in json.loads(file.read_text())
    ]
    return SuiteScenario(name, scored=False, checks=checks)


async def _serve_skills() -> None:
    from cleats import app  # noqa: PLC0415
    from cleats.runtime.server_status import ServerStatus  # noqa: PLC0415
    from conformance.listening import MCP_PATH, serve_app  # noqa: PLC0415

    settings = make_settings(telemetry="off", log_level="warning", skill_dirs=(SKILLS_FOLDER,))
    vitals = ServerStatus()
    toolsets = app.load_toolsets(settings, ["skills"], vitals)
    async with app.open_mcp_servers(settings, toolsets, vitals) as [server]:
        await serve_app(server.streamable_http_app(streamable_http_path=MCP_PATH))


if __name__ == "__main__":
    asyncio.run(_serve_skills())
