"""A launch as an agent does it: the sample package, the real workers, a real server, one story."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from tests.launch_client import REAL, client
from tests.launch_sites import EXAMPLES, committed
from tests.model_server import ModelServer, serving
from tests.requirements import requirement
from tests.span_world import Seen, of_home

BROKEN = "\nSee [the missing page](/docs/measurekit/not-there/).\n"


@requirement(
    "e:start", "e:resume", "e:validate", "e:fix", "e:pr", "e:get-artifact", "e:accept:schemas"
)
def test_a_package_becomes_pages_that_are_checked_repaired_and_requested(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("source", "site"):
        shutil.copytree(EXAMPLES / name, tmp_path / name)
    config: dict[str, Any] = {
        "profile": "plain",
        "family": "measurekit",
        "target_platform": "python",
        "required_sections": ["docs", "reference"],
        "allow_manual_edits": True,
        "drive": {"mode": "stepwise"},  # a call for each part: a busy machine is slow
        "github_repo_url": str(tmp_path / "source"),
        "github_ref": committed(tmp_path / "source"),
        "site_repo_url": f"file://{tmp_path / 'site'}",
    }
    committed(tmp_path / "site")
    with (
        serving(ModelServer()) as model,
        client(home, *REAL, PATH=os.environ["PATH"], CLEATS_LAUNCH_MODELS="on") as asked,
    ):
        config["llm"] = {"api_base_url": model.url, "model": "m"}
        run_id = asked.call("launch_start_run", run_config=config)["run_id"]
        for _ in range(3):
            status = asked.on(run_id, "resume")["status"]
        folder = home / f".local/share/cleats/launch/runs/{run_id}"
        page = folder / "work/site/content/docs/measurekit/_index.md"
        page.write_text(page.read_text() + BROKEN)
        broken = asked.on(run_id, "validate")["validation_report"]
        refused = asked.on(run_id, "open_pr")
        fixed = asked.on(run_id, "fix_next")
        request = asked.on(run_id, "open_pr")
        ended = asked.on(run_id, "get_status")["status"]
        written = [asked.text(run_id, each["name"]) for each in ended["artifacts"]]
        log = asked.text(run_id, "events.ndjson")
        described = asked.text(run_id, "run_config.yaml")
        asked.peer.end_input()
        asked.peer.wait()

    assert status["state"] == "READY_FOR_PR"
    assert status["section_states"] == {"docs": "DONE", "reference": "DONE"}
    assert {"page_plan.json", "evidence_map.json", "reports/diff_report.md"} <= {
        each["name"] for each in status["artifacts"]
    }
    [issue] = [each for each in broken["issues"] if each["severity"] in ("blocker", "error")]
    assert (broken["ok"], issue["gate"]) == (False, "internal_links")
    assert refused["error"]["code"] == "ILLEGAL_STATE"
    assert fixed["fixed_issue_id"] == issue["issue_id"]
    assert (fixed["remaining_blockers"], fixed["validation_report"]["ok"]) == (0, True)
    assert request["branch"] == f"launch/{run_id}/measurekit"
    assert ended["state"] == "DONE"
    assert str(tmp_path) not in "".join([*written, log, described, json.dumps(ended)])
    branch = (tmp_path / "site/.git/refs/heads" / request["branch"]).read_text().strip()
    assert branch == request["commit_sha"]
    followed(of_home(home), [json.loads(line) for line in log.splitlines()])


def followed(spans: list[Seen], events: list[dict[str, Any]]) -> None:
    """Every step, gate, model call and publication of the run is a span where it belongs."""
    names = {each.span_id: each.name for each in spans}
    above: dict[str, set[str]] = {}
    for span in spans:
        above.setdefault(span.name.split()[0], set()).add(names.get(span.parent_id, ""))
    told = {kind: _ids(events, kind) for kind in {each["type"] for each in events}}
    exported = {kind: {each.ids for each in spans if each.name.startswith(kind)} for kind in above}
    called = {"call launch_resume", "call launch_validate", "call launch_fix_next"}
    assert above == {
        "call": {""},
        "step": called | {"publication"},
        "gate": {"step validate"},
        "chat": {"step draft"},
        "publication": {"call launch_open_pr"},
    }
    assert told["WORK_ITEM_STARTED"] == told["WORK_ITEM_FINISHED"] == exported["step"]
    assert told["GATE_RUN_STARTED"] == told["GATE_RUN_FINISHED"] == exported["gate"]
    assert told["LLM_CALL_STARTED"] == told["LLM_CALL_FINISHED"] == exported["chat"]
    assert told["PR_OPENED"] == exported["publication"]


def _ids(events: list[dict[str, Any]], kind: str) -> set[tuple[str, str, str]]:
    return {
        (each["trace_id"], each["span_id"], each["parent_span_id"])
        for each in events
        if each["type"] == kind and "parent_span_id" in each
    }
