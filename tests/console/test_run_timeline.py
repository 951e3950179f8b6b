"""Tests of the timeline of a run, and of the steps that it allows."""

import json

from cleats.console.pages.run_pages import list_pages, read_changed_file, split_patch
from cleats.console.run_timeline import build_timeline, list_actions, parse_events

EVENTS = [
    ("RUN_CREATED", "2026-01-01T00:00:00Z", {"product_slug": "kit"}),
    ("WORK_ITEM_STARTED", "2026-01-01T00:00:01Z", {"work_item_id": "w1", "scope_key": "clone"}),
    ("WORK_ITEM_FINISHED", "2026-01-01T00:00:03.500Z", {"work_item_id": "w1", "outputs": ["a", "b"]}),
    ("RUN_STATE_CHANGED", "2026-01-01T00:00:04Z", {"new_state": "CLONED_INPUTS"}),
    ("WORK_ITEM_STARTED", "2026-01-01T00:00:05Z", {"work_item_id": "w2", "scope_key": "inventory"}),
    ("GATE_RUN_FINISHED", "2026-01-01T00:00:06Z", {"gate": "schema", "duration_ms": 9, "ok": False}),
]


def test_states_have_their_steps_with_durations() -> None:
    text = "\n".join(json.dumps({"type": kind, "ts": moment, "payload": payload}) for kind, moment, payload in EVENTS)

    states, gates = build_timeline(parse_events(text + '\n{"type": "RUN_ST'))

    assert [(state.label, len(state.steps)) for state in states] == [("Created", 1), ("Repositories fetched", 1)]
    assert (states[0].steps[0].duration_ms, states[0].steps[0].outputs) == (2500.0, 2)
    assert (states[1].steps[0].duration_ms, states[1].steps[0].status) == (None, "running")
    assert (gates["schema"].duration_ms, gates["schema"].ok) == (9, False)


def test_a_run_allows_the_steps_of_its_state() -> None:
    def allowed(state: str, report: dict[str, bool] | None = None) -> list[str]:
        return [name for name, is_allowed in list_actions(state, report).items() if is_allowed]

    assert allowed("DONE") == allowed("FAILED") == allowed("CANCELLED") == []
    assert allowed("READY_FOR_PR", {"ok": True}) == ["validate", "open_pr", "cancel"]
    assert allowed("VALIDATING", {"ok": False}) == ["resume", "validate", "fix", "cancel"]
    assert allowed("CREATED") == ["resume", "cancel"]


def test_drafts_are_the_pages_of_a_run() -> None:
    names = ["drafts/docs/content/a.md", "drafts/docs/draft_manifest.json", "reports/diff_report.md"]

    assert list_pages(names) == [{"section": "docs", "path": "content/a.md", "name": "drafts/docs/content/a.md"}]


def test_a_patch_is_shown_by_file() -> None:
    patch = (
        "diff --git a/x.md b/x.md\nnew file mode 100644\n--- /dev/null\n+++ b/x.md\n@@ -0,0 +1,2 @@\n+one\n+<script>\n"
        "diff --git a/y.md b/y.md\n--- a/y.md\n+++ b/y.md\n@@ -1 +1 @@\n-old\n+new\n"
    )

    first, second = split_patch(patch)

    assert (first["path"], first["added"], first["removed"], first["is_new"]) == ("x.md", 2, 0, True)
    assert (second["path"], second["added"], second["removed"], second["is_new"]) == ("y.md", 1, 1, False)
    assert not any("<script" in line.html for line in first["lines"])


def test_an_archive_that_cannot_be_read_has_no_patch() -> None:
    assert read_changed_file("not base64!", "changes.patch") == ""
    assert read_changed_file("UEsDBA==", "changes.patch") == ""


def test_the_changes_of_pages_come_before_the_record_of_the_launch() -> None:
    patch = "".join(f"diff --git a/{path} b/{path}\n@@ -0,0 +1 @@\n+x\n" for path in ("docs/.record.json", "docs/a.md"))

    assert [file["path"] for file in split_patch(patch)] == ["docs/a.md", "docs/.record.json"]
