"""A launch as an agent does it: the sample package, the real workers, a real server, one story."""

import json
import os
import shutil
from pathlib import Path

from tests.launch_client import REAL, client
from tests.launch_sites import EXAMPLES, committed
from tests.requirements import requirement

BROKEN = "\nSee [the missing page](/docs/measurekit/not-there/).\n"


@requirement(
    "e:start", "e:resume", "e:validate", "e:fix", "e:pr", "e:get-artifact", "e:accept:schemas"
)
def test_a_package_becomes_pages_that_are_checked_repaired_and_requested(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("source", "site"):
        shutil.copytree(EXAMPLES / name, tmp_path / name)
    config = {
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
    with client(home, *REAL, PATH=os.environ["PATH"]) as asked:
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
