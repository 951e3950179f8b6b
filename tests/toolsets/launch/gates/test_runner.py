"""Tests of the gate runner: deadlines, crashes, missing tools; and the combined report."""

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.gates import registry, worktree
from cleats.toolsets.launch.gates.internal_links import BROKEN_LINK
from cleats.toolsets.launch.gates.markdown_lint import TAB_CHARACTER
from cleats.toolsets.launch.gates.model import Gate, GateMessage
from cleats.toolsets.launch.gates.registry import GateVerdict, build_verdict, run_gate
from cleats.toolsets.launch.gates.secrets import LEAKED_SECRET
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.patching.patches import make_bundle, make_range_patch
from cleats.toolsets.launch.profiles.model import load_named_profile
from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site import programs
from cleats.toolsets.launch.workers import validate
from tests.support.gates import GUIDE_PATH, PAGE_TEXTS, START_PATH, GateRun, create_gate_run, render_page
from tests.support.requirements import requirement


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> GateRun:
    return create_gate_run(tmp_path_factory.mktemp("launch"))


def judge_gate(launch: GateRun, gate: Gate, **changes: Any) -> GateVerdict:
    async def run_judge() -> GateVerdict:
        return await run_gate(gate, replace(await launch.open_site(), **changes))

    return anyio.run(run_judge)


def test_every_gate_says_its_name_and_purpose_and_is_listed_once() -> None:
    gates = [registry.load_gate(name) for name in registry.GATE_NAMES]

    assert [gate.name for gate in gates] == list(registry.GATE_NAMES)
    assert all(gate.purpose.strip() for gate in gates)
    assert all(callable(gate.check) for gate in gates)
    assert all(0 < gate.local_seconds <= gate.strict_seconds for gate in gates)


@pytest.mark.parametrize("name", ["plain", "aspose"])
def test_the_built_in_profiles_name_gates_that_are_there(name: str) -> None:
    profile = load_named_profile(name)

    for level in ("local", "ci", "prod"):
        chosen = [gate.name for gate in registry.select_gates(profile.gates.for_profile(level))]
        assert "truth_lock" in chosen
        assert "hugo_build" in chosen
    assert "external_links" not in profile.gates.local


def test_a_gate_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ToolError) as refused:
        registry.select_gates(["schema", "nothing"])

    assert refused.value.code is ErrorCode.SCHEMA_VALIDATION_FAILED


def test_every_kind_of_issue_has_one_code_a_remedy_and_a_gate_that_owns_it() -> None:
    kinds = [
        kind for name in (*registry.GATE_NAMES, "registry", "worktree") for kind in registry.list_issue_kinds(name)
    ]
    files = Path(registry.__file__).parent.glob("*.py")
    codes = [code for file in files for code in re.findall(r'"(GATE_[A-Z_]+)"', file.read_text())]

    assert all(kind.remedy.strip() for kind in kinds)
    assert sorted(kind.code for kind in kinds) == sorted(codes)
    assert len(set(codes)) == len(codes)


def test_only_the_fixes_of_the_named_gates_are_loaded() -> None:
    assert set(registry.load_fixes(["conflict_markers", "worktree", "unknown"])) == {"GATE_CONFLICT_MARKER"}


def test_a_gate_that_takes_too_long_is_a_blocker(launch: GateRun) -> None:
    release = threading.Event()

    def block_gate(_site: LaunchSite) -> Iterator[GateMessage]:
        release.wait(30)
        yield "too late"

    try:
        verdict = judge_gate(launch, Gate(name="x", purpose="x", check=block_gate, local_seconds=0.05))
    finally:
        release.set()

    assert not verdict.ok
    assert [(issue.error_code, issue.severity) for issue in verdict.issues] == [("GATE_TIMEOUT", "blocker")]


def test_an_errand_that_takes_too_long_is_cancelled(launch: GateRun) -> None:
    async def wait_forever(_site: LaunchSite) -> list[GateMessage]:
        await anyio.sleep_forever()
        return []

    verdict = judge_gate(launch, Gate(name="x", purpose="x", check=wait_forever, local_seconds=0.05))

    assert [issue.error_code for issue in verdict.issues] == ["GATE_TIMEOUT"]


def test_a_gate_that_crashes_is_a_blocker_and_names_no_folder_of_this_machine(
    launch: GateRun,
) -> None:
    def crash_gate(site: LaunchSite) -> Iterator[GateMessage]:
        yield "before"
        raise RuntimeError(f"cannot read {site.job.site}/a.md")

    verdict = judge_gate(launch, Gate(name="x", purpose="x", check=crash_gate))

    assert [issue.error_code for issue in verdict.issues] == ["GATE_CRASHED"]
    assert verdict.issues[0].message == "the gate failed: RuntimeError: cannot read a.md"
    assert str(launch.job.root) not in verdict.log


def test_a_gate_without_its_tool_is_a_blocker_never_a_pass(launch: GateRun) -> None:
    verdict = judge_gate(launch, registry.load_gate("hugo_build"), programs={})

    assert [(issue.error_code, issue.severity) for issue in verdict.issues] == [("GATE_TOOL_MISSING", "blocker")]


def test_issues_are_named_and_ordered_the_same_way_each_time(launch: GateRun) -> None:
    answers: list[GateMessage] = [
        TAB_CHARACTER.draft("w", "b.md", 2),
        BROKEN_LINK.draft("e", "b.md", 9),
        BROKEN_LINK.draft("e", "a.md", 1),
        LEAKED_SECRET.draft("b", "z.md"),
        BROKEN_LINK.draft("e", "a.md", 1),
    ]
    site = anyio.run(launch.open_site)

    one, other = build_verdict("g", answers, site, strict=False), build_verdict("g", answers[::-1], site, strict=False)

    assert one.issues == other.issues
    assert [(issue.severity, issue.path) for issue in one.issues] == [
        ("blocker", "z.md"),
        ("error", "a.md"),
        ("error", "b.md"),
        ("warn", "b.md"),
    ]


def test_what_a_page_said_before_the_launch_is_not_judged(tmp_path: Path) -> None:
    old = "---\ntitle: Old\n---\n# A title\n- An old bullet, __OLD__\t.\n"
    path = "content/docs/shelf/old.md"
    launch = create_gate_run(tmp_path, site={path: old})
    launch.write_file(path, old + "- A new bullet, __NEW__.\n")

    issue_positions = {
        (issue.error_code, issue.path, issue.line)
        for gate in ("front_matter", "markdown_lint", "template_tokens", "truth_lock")
        for issue in launch.run_gate(gate).issues
    }

    assert issue_positions == {("GATE_TOKEN_LEAKED", path, 6), ("GATE_TRUTH_UNMARKED", path, 6)}


def validate_job(job: WorkerJob) -> dict[str, Any]:
    return dict(anyio.run(validate.run_validate, job))


@requirement("e:code:gate-failed")
def test_a_launch_without_fault_passes_and_says_so(tmp_path: Path) -> None:
    job = create_gate_run(tmp_path).job

    facts = validate_job(job)

    assert (facts["ok"], facts["blockers"], facts["errors"], facts["warnings"]) == (True, 0, 0, 0)
    assert all(facts["gates"].values())
    report = job.read_json("validation_report.json")
    artifacts.check_document("validation_report.json", report)
    artifacts.check_document("truth_lock_report.json", job.read_json("truth_lock_report.json"))
    assert report["manual_edits"] is False
    assert set(report["toolchain"]) == {"hugo"}
    assert [gate["name"] for gate in report["gates"]] == [*facts["gates"]]
    assert all(job.has_artifact(gate["log_path"]) for gate in report["gates"])
    events = [(event["type"], event["payload"]["gate"]) for event in job.events]
    assert events[:2] == [("GATE_RUN_STARTED", "schema"), ("GATE_RUN_FINISHED", "schema")]
    finished = [gate for kind, gate in events if kind == "GATE_RUN_FINISHED"]
    assert finished == [gate["name"] for gate in report["gates"]]
    assert not (job.root / "work" / "scratch").exists()


def test_the_same_worktree_gives_the_same_bytes_in_any_folder(tmp_path: Path) -> None:
    outputs = []
    for name in ("one", "another-and-longer"):
        launch = create_gate_run(tmp_path / name)
        launch.write_file(GUIDE_PATH, render_page("Guide", "Bad __TOKEN__ and [x](/nowhere/) and\tmore."))
        facts = validate_job(launch.job)
        outputs.append((facts, launch.job.outputs))
        for artifact in launch.job.outputs:
            assert str(tmp_path).encode() not in launch.job.read(artifact)

    assert outputs[0] == outputs[1]
    assert outputs[0][0]["ok"] is False


def test_what_was_edited_by_hand_is_an_error_unless_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "select_gates", lambda _names: [registry.load_gate("front_matter")])
    reports = []
    for allowed in (False, True):
        launch = create_gate_run(tmp_path / str(allowed), config={"allow_manual_edits": allowed})
        launch.edit_file(GUIDE_PATH, "weight: 10", "weight: 20")
        launch.write_file("content/docs/shelf/note.md", render_page("A note", "Mine."))
        validate_job(launch.job)
        reports.append(launch.job.read_json("validation_report.json"))

    strict, lenient = reports
    files = ["content/docs/shelf/developer-guide.md", "content/docs/shelf/note.md"]
    assert [item["manual_edited_files"] for item in reports] == [files, files]
    assert [item["error_code"] for item in strict["issues"]] == ["GATE_MANUAL_EDIT"] * 2
    assert (strict["ok"], lenient["ok"]) == (False, True)


def test_a_worktree_that_moves_under_the_gates_is_a_blocker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = create_gate_run(tmp_path)

    def edit_page(site: LaunchSite) -> Iterator[GateMessage]:
        launch.write_file(GUIDE_PATH, PAGE_TEXTS[GUIDE_PATH] + "\nMore.\n")
        yield f"{site.level}"

    gate = Gate(name="meddle", purpose="x", check=edit_page)
    monkeypatch.setattr(registry, "select_gates", lambda _names: [gate])

    facts = validate_job(launch.job)

    codes = {issue["error_code"] for issue in launch.job.read_json("validation_report.json")["issues"]}
    assert not facts["ok"]
    assert codes == {"GATE_WORKTREE_MOVED", "GATE_MANUAL_EDIT"}


def list_edited_files(job: WorkerJob) -> list[str]:
    async def survey_job() -> list[str]:
        return worktree.find_edited_files(await validate.survey_site(job, load_named_profile("plain"), job.root))

    return anyio.run(survey_job)


def test_a_later_patch_is_no_edit_by_hand_once_it_was_applied(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path)
    text = PAGE_TEXTS[GUIDE_PATH]
    patch = make_range_patch(GUIDE_PATH, text, 3, 3, "weight: 20\n")
    launch.edit_file(GUIDE_PATH, "weight: 10", "weight: 20")
    job = launch.job
    job.write("patch_bundle.delta.1.json", make_bundle([patch]))
    planned = replace(job, inputs={**job.inputs, **job.outputs})
    applied = replace(planned, facts={**job.facts, "fix:1": {}, "apply:fix:1": {}})

    assert list_edited_files(planned) == [GUIDE_PATH]
    assert list_edited_files(applied) == []


def test_a_strict_profile_takes_no_warning(tmp_path: Path) -> None:
    oks = {}
    for level, strictness in (("local", ""), ("ci", "relaxed"), ("ci", "strict"), ("prod", "")):
        config = {"validation_profile": level, "ci_strictness": strictness}
        oks[level, strictness] = validate.is_strict(config)

    assert oks == {
        ("local", ""): False,
        ("ci", "relaxed"): False,
        ("ci", "strict"): True,
        ("prod", ""): True,
    }


@requirement("e:code:toolchain")
@pytest.mark.parametrize("level", ["local", "ci", "prod"])
def test_no_profile_validates_without_hugo(tmp_path: Path, level: str) -> None:
    launch = create_gate_run(tmp_path, config={"validation_profile": level}, settings={"hugo": str(tmp_path / "none")})

    with pytest.raises(ToolError) as missing:
        validate_job(launch.job)

    assert missing.value.code is ErrorCode.TOOLCHAIN_MISSING
    assert missing.value.retryable is False
    assert missing.value.message == f"The gates of the profile {level!r} cannot run: hugo is not installed."
    assert missing.value.details == {"missing": ["hugo"], "too_old": {}, "broken": {}}


@requirement("e:code:toolchain")
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo loading; echo 'libfoo.so: not found' >&2; exit 127", "ended with exit code 127: libfoo.so: not found"),
        ("kill -9 $$", "ended with signal 9 and no output"),
        ("exec sleep 600", "did not print its version within 0.5 seconds"),
    ],
)
def test_a_hugo_that_fails_or_hangs_is_reported_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    hugo = tmp_path / "hugo"
    hugo.write_text(f"#!/bin/sh\n{script}\n")
    hugo.chmod(0o755)
    monkeypatch.setattr(programs, "VERSION_TIMEOUT_SECONDS", 0.5)
    launch = create_gate_run(tmp_path / "run", settings={"hugo": str(hugo)})

    with pytest.raises(ToolError) as broken:
        validate_job(launch.job)

    assert broken.value.code is ErrorCode.TOOLCHAIN_MISSING
    assert reason in broken.value.message
    assert "not installed" not in broken.value.message
    assert reason in broken.value.details["broken"]["hugo"]


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("exec /bin/sleep 600", "GATE_TIMEOUT", "hugo did not end within 0.3 seconds"),
        ("echo 'no space left' >&2; exit 3", "GATE_HUGO_BUILD_FAILED", "exit code 3: no space left"),
        ("kill -9 $$", "GATE_HUGO_BUILD_FAILED", "signal 9 and no output"),
    ],
)
def test_a_hugo_that_hangs_or_fails_while_it_builds_is_reported_as_that(
    tmp_path: Path, script: str, code: str, message: str
) -> None:
    hugo = tmp_path / "hugo"
    hugo.write_text(f"#!/bin/sh\n{script}\n")
    hugo.chmod(0o755)
    gate = registry.load_gate("hugo_build")
    seconds = 0.3 if code == "GATE_TIMEOUT" else gate.local_seconds

    verdict = judge_gate(
        create_gate_run(tmp_path / "run"), replace(gate, local_seconds=seconds), programs={"hugo": str(hugo)}
    )

    assert not verdict.ok
    assert {issue.error_code for issue in verdict.issues} == {code}
    assert all(message in issue.message for issue in verdict.issues)


def test_a_run_may_do_without_the_gate_of_the_configuration(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path, config={"hugo": {"use_config_gate": False}})

    gates = validate_job(launch.job)["gates"]

    assert "hugo_config" not in gates
    assert "hugo_build" in gates


def test_a_validation_that_was_killed_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path)
    old_output = launch.job.root / "work" / "scratch" / "public" / "old.html"
    old_output.parent.mkdir(parents=True)
    old_output.write_text("old")

    validate_job(launch.job)

    assert not old_output.exists()


def test_the_truth_report_lists_pages_and_what_is_unresolved(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path)
    launch.write_file(START_PATH, render_page("Start", "- A claim. <!-- claims: eeeeeeee -->"))

    validate_job(launch.job)

    report = launch.job.read_json("truth_lock_report.json")
    assert report["ok"] is False
    assert report["unresolved_claim_ids"] == ["e" * 8]
    assert {"path": START_PATH, "claim_ids": ["e" * 8]} in report["pages"]
    assert json.dumps(report["issues"])
