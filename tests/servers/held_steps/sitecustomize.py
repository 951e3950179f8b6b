"""Steps of a launch that stop for ever at their first attempt, for whoever kills them there.

Python imports this module at its start when its folder is on the path. A step that the file
`hold.json` in the home names makes the folder `held/STEP` there when it stops: the clone between
its two repositories, the application of patches behind its first file, a validation before its
first gate, every other step at its beginning.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOME = Path.home()


def hold(step: str) -> None:
    """Stop, if that is wanted and has not been done before."""
    if step in json.loads((HOME / "hold.json").read_text()):
        try:
            (HOME / "held" / step).mkdir(parents=True)
        except FileExistsError:
            return
        while True:
            time.sleep(1)


def behind(kind: type, name: str, stop: Callable[..., None]) -> None:
    """Call `stop` with what a method was called with, each time that it has returned."""
    method = getattr(kind, name)

    def called(*given: Any, **more: Any) -> Any:
        made = method(*given, **more)
        stop(*given, **more)
        return made

    setattr(kind, name, called)


def stops() -> None:
    """Have the steps of this process stop where they should."""
    from cleats.toolsets.launch.patching.fence import Fence  # noqa: PLC0415 - only in workers
    from cleats.toolsets.launch.workers.job import Job  # noqa: PLC0415

    def begun(order: dict[str, Any], _say: object) -> None:
        step = order["step"]
        if step == "apply":
            behind(Fence, "write", lambda *_given, **_more: hold(step))
        elif step == "clone":
            behind(Job, "tell", lambda job, *_said: hold(step) if job.repo.exists() else None)
        elif step == "validate:1":
            behind(Job, "event", lambda *_given, **_more: hold(step))
        else:
            hold(step)

    behind(Job, "of", begun)


if sys.orig_argv[-1] == "cleats.toolsets.launch.workers":
    stops()
