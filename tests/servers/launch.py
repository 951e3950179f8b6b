"""The launch tools over the small worker of the tests: `python -m tests.servers.launch`.

Tools, service, engine, store and processes are the real ones; only what a step does is small. The
file `trouble.json` in the home says what goes wrong in the runs that are started from then on.
"""

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from cleats import app
from cleats.cli.config import load
from cleats.runtime import spans
from cleats.runtime.journal import log_to_stderr
from cleats.runtime.vitals import Vitals
from cleats.toolsets.launch.drive.driver import Engine
from cleats.toolsets.launch.engine import STORE, folder
from cleats.toolsets.launch.service import Launches
from cleats.toolsets.launch.store.port import Run
from cleats.toolsets.launch.store.sqlite import SqliteStore
from cleats.toolsets.launch.tools import over
from cleats.transports.stdio import claimed
from tests.launch_world import MODULES, PACE, ROOT


class SmallEngine(Engine):
    """An engine whose runs know what is to go wrong in them."""

    async def create(self, config: Mapping[str, Any], **given: Any) -> tuple[Run, bool]:
        trouble = Path(os.environ["HOME"]) / "trouble.json"
        test = json.loads(trouble.read_text()) if trouble.exists() else {}
        return await super().create({**config, "test": test}, **given)


class Small(Launches):
    """The tools' service over such an engine."""

    @cached_property
    def engine(self) -> Engine:
        place = folder(self._settings)
        return SmallEngine(
            SqliteStore(place / STORE),
            place / "runs",
            modules=MODULES,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            grace=0.2,
            pace=PACE,
            tracer=spans.tracer(self._settings),
        )


def main() -> None:
    with claimed() as descriptors:
        log_to_stderr("info")
        settings = load(os.environ)
        app.run(app.serve_stdio, settings, [over(Small(settings))], Vitals(), descriptors)


if __name__ == "__main__":
    main()
