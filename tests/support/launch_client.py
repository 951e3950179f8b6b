"""A client of the launch tools that checks every answer against the contract."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cleats import app
from cleats.contract.violations import Validator
from cleats.settings import Settings
from tests.support.mcp_client import ServerPeer, start_server

SMALL_SERVER_COMMAND = (sys.executable, "-m", "tests.support.servers.launch")
"""The command of a server with the real tools and a small worker."""

REAL_SERVER_COMMAND = (sys.executable, "-m", "cleats", "serve", "launch")

LAUNCH_TOOLS = app.build_registry(Settings(), ["launch"])

RUN_CONFIG: dict[str, Any] = {
    "github_repo_url": "https://github.com/owner/aspose-3d-foss-python",
    "github_ref": "0123456789abcdef0123456789abcdef01234567",
    "family": "3d",
    "target_platform": "python",
    "required_sections": ["docs"],
    "site_repo_url": "https://github.com/owner/site",
}


class LaunchToolClient:
    """A client of one server, with the home of that server."""

    def __init__(self, peer: ServerPeer, home: Path) -> None:
        self.peer = peer
        self.home = home
        self._request_number = 0

    def set_trouble(self, **faults: Any) -> None:
        """Set the faults of the runs that are started from now on."""
        (self.home / "trouble.json").write_text(json.dumps(faults))

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its payload, checked against its schema and its error codes."""
        self._request_number += 1
        self.peer.send_call(self._request_number, name, **arguments)
        result = self.peer.wait_for_answer(self._request_number)["result"]
        body: dict[str, Any] = result["structuredContent"]
        [text] = result["content"]
        assert json.loads(text["text"]) == body
        assert result["isError"] is not body["ok"]
        tool = LAUNCH_TOOLS.find(name)
        assert tool.output is not None
        assert Validator(tool.output).find_violations(body) == []
        if not body["ok"]:
            codes = {code.name for code in tool.codes}
            assert body["error"]["code"] in codes
        return body

    def start_run(self, **config: Any) -> str:
        """Start a run that continues only when it is told to; return its id."""
        run_config = {**RUN_CONFIG, "drive": {"mode": "stepwise"}, **config}
        run_id: str = self.call("launch_start_run", run_config=run_config)["run_id"]
        return run_id

    def call_for_run(self, run_id: str, verb: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool about a run."""
        return self.call(f"launch_{verb}", run_id=run_id, **arguments)

    def read_artifact_text(self, run_id: str, name: str) -> str:
        """Return the content of an artifact that is text."""
        answer = self.call_for_run(run_id, "get_artifact", artifact_name=name)
        content: str = answer["artifact"]["content"]
        return content

    def read_events(self, run_id: str) -> list[dict[str, Any]]:
        """Return the event log of a run."""
        return [json.loads(line) for line in self.read_artifact_text(run_id, "events.ndjson").splitlines()]


LONG_TIMEOUTS = ",".join(f"{tool.name}=900" for tool in LAUNCH_TOOLS)
"""Timeouts of 900 seconds for all tools; some have five by default, too few on a busy machine."""


@contextmanager
def open_launch_client(home: Path, *command: str, **environ: str) -> Iterator[LaunchToolClient]:
    """Start a server in a home of its own and open a client of it."""
    server_environ = {"CLEATS_TIMEOUTS": LONG_TIMEOUTS, **environ}
    with start_server(*(command or SMALL_SERVER_COMMAND), home=home, ready=True, **server_environ) as peer:
        yield LaunchToolClient(peer, home)


def get_error_code(answer: dict[str, Any]) -> str:
    """Return the error code of a failed call."""
    error: str = answer["error"]["code"]
    return error
