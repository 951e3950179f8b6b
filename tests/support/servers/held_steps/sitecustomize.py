"""Steps of a launch that stop forever at their first attempt, so that a test can kill them there.

Python imports this module at startup if its folder is on the path. A step that the file `hold.json`
in the home names creates the folder `held/STEP` there when it stops: the clone between its two
repositories, the application of patches after its first file, a validation before its first gate,
every other step at its start.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOME_FOLDER = Path.home()


def stop_at_step(step: str) -> None:
    """Stop forever if the test asks for it and the step has not stopped before."""
    if step in json.loads((HOME_FOLDER / "hold.json").read_text()):
        try:
            (HOME_FOLDER / "held" / step).mkdir(parents=True)
        except FileExistsError:
            return
        while True:
            time.sleep(1)


def call_after(owner: type, method_name: str, callback: Callable[..., None]) -> None:
    """Call `callback` with the arguments of a method each time the method has returned."""
    method = getattr(owner, method_name)

    def call_and_notify(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        callback(*args, **kwargs)
        return result

    setattr(owner, method_name, call_and_notify)


def install_stops() -> None:
    """Make the steps of this process stop at their points."""
    from cleats.toolsets.launch.patching.path_guard import WorktreeGuard  # noqa: PLC0415 - only in workers
    from cleats.toolsets.launch.runs.job import WorkerJob  # noqa: PLC0415

    def on_job_start(job_document: dict[str, Any], _say: object) -> None:
        step = job_document["step"]
        if step == "apply":
            call_after(WorktreeGuard, "write", lambda *_given, **_more: stop_at_step(step))
        elif step == "clone":
            call_after(
                WorkerJob, "report_progress", lambda job, *_said: stop_at_step(step) if job.repo.exists() else None
            )
        elif step == "validate:1":
            call_after(WorkerJob, "add_event", lambda *_given, **_more: stop_at_step(step))
        else:
            stop_at_step(step)

    call_after(WorkerJob, "from_order", on_job_start)


if sys.orig_argv[-1] == "cleats.toolsets.launch.workers":
    install_stops()
