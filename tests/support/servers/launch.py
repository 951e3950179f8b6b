"""The launch tools with the small worker of the tests: `python -m tests.support.servers.launch`.

Tools, service, engine, store and processes are the real ones; only the steps are small. The file
`trouble.json` in the home has the faults of the runs that are started from then on.
"""

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from cleats import app
from cleats.cli.settings_loader import load_settings
from cleats.runtime import spans
from cleats.runtime.background_writer import log_to_stderr
from cleats.runtime.server_status import ServerStatus
from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.drive.run_driver import DriverResources
from cleats.toolsets.launch.runs.job import WorkerLauncher
from cleats.toolsets.launch.service import LaunchService
from cleats.toolsets.launch.setup import STORE_FILE_NAME, get_launch_folder
from cleats.toolsets.launch.store.databases import SqliteStore
from cleats.toolsets.launch.store.model import Run
from cleats.toolsets.launch.tools import build_service_toolset
from cleats.transports.stdio import claim_stdio
from tests.support.launch_runs import TEST_PACE, WORKER_FUNCTIONS
from tests.support.paths import REPOSITORY_ROOT


class SmallEngine(RunEngine):
    """An engine that passes the faults of a test to its runs."""

    async def create(self, config: Mapping[str, Any], **options: Any) -> tuple[Run, bool]:
        trouble_file = Path(os.environ["HOME"]) / "trouble.json"
        faults = json.loads(trouble_file.read_text()) if trouble_file.exists() else {}
        return await super().create({**config, "test": faults}, **options)


class SmallLaunches(LaunchService):
    """The service of the launch tools with such an engine."""

    @cached_property
    def engine(self) -> RunEngine:
        launch_folder = get_launch_folder(self._settings)
        env = {**os.environ, "PYTHONPATH": str(REPOSITORY_ROOT)}
        resources = DriverResources(
            store=SqliteStore(launch_folder / STORE_FILE_NAME),
            runs=launch_folder / "runs",
            workers=WorkerLauncher(WORKER_FUNCTIONS, env, 0.2),
            tracer=spans.get_tracer(self._settings),
        )
        return SmallEngine(resources, TEST_PACE)


def main() -> None:
    with claim_stdio() as descriptors:
        log_to_stderr("info")
        settings = load_settings(os.environ)
        app.run_server(
            app.serve_stdio, settings, [build_service_toolset(SmallLaunches(settings))], ServerStatus(), descriptors
        )


if __name__ == "__main__":
    main()
