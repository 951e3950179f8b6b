"""A client of the launch tools that holds every answer to what was promised."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cleats import app
from cleats.contract.violations import Validator
from cleats.settings import Settings
from tests.peer import Peer, started

SMALL = (sys.executable, "-m", "tests.servers.launch")
"""The real tools over a small worker."""

REAL = (sys.executable, "-m", "cleats", "serve", "launch")

TOOLS = app.catalogue(Settings(), ["launch"])

CONFIG: dict[str, Any] = {
    "github_repo_url": "https://github.com/owner/aspose-3d-foss-python",
    "github_ref": "0123456789abcdef0123456789abcdef01234567",
    "family": "3d",
    "target_platform": "python",
    "required_sections": ["docs"],
    "site_repo_url": "https://github.com/owner/site",
}


class Client:
    """One server and the answers it gave."""

    def __init__(self, peer: Peer, home: Path) -> None:
        self.peer = peer
        self.home = home
        self._number = 0

    def trouble(self, **what: Any) -> None:
        """What goes wrong in the runs that are started from now on."""
        (self.home / "trouble.json").write_text(json.dumps(what))

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The payload of a call, which fits its schema, and is an error exactly when not ok."""
        self._number += 1
        self.peer.call(self._number, name, **arguments)
        result = self.peer.answer(self._number)["result"]
        body: dict[str, Any] = result["structuredContent"]
        [text] = result["content"]
        assert json.loads(text["text"]) == body
        assert result["isError"] is not body["ok"]
        tool = TOOLS.find(name)
        assert tool.output is not None
        assert Validator(tool.output).violations(body) == []
        if not body["ok"]:
            codes = {code.name for code in tool.codes}
            assert body["error"]["code"] in codes
        return body

    def start(self, **config: Any) -> str:
        """Start a run that only goes on when it is told to; its id."""
        given = {**CONFIG, "drive": {"mode": "stepwise"}, **config}
        run_id: str = self.call("launch_start_run", run_config=given)["run_id"]
        return run_id

    def on(self, run_id: str, verb: str, **more: Any) -> dict[str, Any]:
        """Call a tool about a run."""
        return self.call(f"launch_{verb}", run_id=run_id, **more)

    def text(self, run_id: str, name: str) -> str:
        """An artifact that is text."""
        found = self.on(run_id, "get_artifact", artifact_name=name)
        content: str = found["artifact"]["content"]
        return content

    def events(self, run_id: str) -> list[dict[str, Any]]:
        """The log of a run."""
        return [json.loads(line) for line in self.text(run_id, "events.ndjson").splitlines()]


PATIENT = ",".join(f"{tool.name}=900" for tool in TOOLS)
"""Some tools have five seconds, and a busy machine may take those for itself."""


@contextmanager
def client(home: Path, *command: str, **environ: str) -> Iterator[Client]:
    """A server of its own, in a home of its own."""
    given = {"CLEATS_TIMEOUTS": PATIENT, **environ}
    with started(*(command or SMALL), home=home, ready=True, **given) as peer:
        yield Client(peer, home)


def code(answer: dict[str, Any]) -> str:
    """Why it did not work."""
    error: str = answer["error"]["code"]
    return error
