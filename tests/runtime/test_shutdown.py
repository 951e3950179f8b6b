"""A process ends within its time, even if one of its threads does not."""

import subprocess
import sys

import pytest

from tests.support.waiting import WAIT_TIMEOUT_SECONDS

PROGRAM_SOURCE = """
import atexit, sys, threading
from cleats.runtime import shutdown
atexit.register(lambda: print("handler"))
work = {"stuck": threading.Event().wait, "brief": lambda: None}[sys.argv[1]]
threading.Thread(target=work).start()
print("output")
shutdown.exit_despite_threads(3)
print("returned")
"""


@pytest.mark.parametrize(
    ("work", "exit_code", "output"),
    [("stuck", 3, ["output", "handler"]), ("brief", 0, ["output", "returned", "handler"])],
)
def test_a_thread_that_does_not_end_is_left_behind_after_the_last_output(
    work: str, exit_code: int, output: list[str]
) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM_SOURCE, work], capture_output=True, timeout=WAIT_TIMEOUT_SECONDS, check=False
    )

    assert completed.returncode == exit_code
    assert completed.stdout.decode().split() == output
