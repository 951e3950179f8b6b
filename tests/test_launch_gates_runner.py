"""How gates are run: deadlines, crashes, missing tools; and the report they make together."""

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
from cleats.toolsets.launch import artifacts
from cleats.toolsets.launch.gates import registry, worktree
from cleats.toolsets.launch.gates.model import Gate, Said, blocker, error, warning
from cleats.toolsets.launch.gates.remedies import REMEDIES
from cleats.toolsets.launch.gates.runner import Verdict, judge, settle
from cleats.toolsets.launch.gates.site import Site
from cleats.toolsets.launch.patching.patches import bundle, update_range
from cleats.toolsets.launch.profiles.model import load
from cleats.toolsets.launch.workers import validate
from cleats.toolsets.launch.workers.job import Job
from tests.launch_gates_world import GUIDE, PAGES, START, World, page, world
from tests.requirements import requirement


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world(tmp_path_factory.mktemp("launch"))


def judged(launch: World, gate: Gate, **more: Any) -> Verdict:
    async def run() -> Verdict:
        return await judge(gate, replace(await launch.site(), **more))

    return anyio.run(run)


def test_every_gate_says_its_name_and_purpose_and_is_listed_once() -> None:
    gates = [registry.load(name) for name in registry.NAMES]

    assert [gate.name for gate in gates] == list(registry.NAMES)
    assert all(gate.purpose.strip() for gate in gates)
    assert all((gate.check is None) != (gate.errand is None) for gate in gates)
    assert all(0 < gate.local <= gate.strict for gate in gates)


@pytest.mark.parametrize("name", ["plain", "aspose"])
def test_the_built_in_profiles_name_gates_that_are_there(name: str) -> None:
    profile = load(name)

    for level in ("local", "ci", "prod"):
        chosen = [gate.name for gate in registry.chosen(profile.gates.of(level))]
        assert "truth_lock" in chosen
        assert "hugo_build" in chosen
    assert "external_links" not in profile.gates.local


def test_a_gate_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ToolError) as refused:
        registry.chosen(["schema", "nothing"])

    assert refused.value.code is ErrorCode.SCHEMA_VALIDATION_FAILED


def test_every_code_has_a_remedy() -> None:
    folder = Path(registry.__file__).parent
    texts = [file.read_text() for file in folder.glob("*.py") if file.stem != "remedies"]
    codes = {code for text in texts for code in re.findall(r'"(GATE_[A-Z_]+)"', text)}

    assert codes == REMEDIES.keys()


def test_a_gate_that_takes_too_long_is_a_blocker(launch: World) -> None:
    release = threading.Event()

    def stuck(_site: Site) -> Iterator[Said]:
        release.wait(30)
        yield "too late"

    try:
        verdict = judged(launch, Gate(name="x", purpose="x", check=stuck, local=0.05))
    finally:
        release.set()

    assert not verdict.ok
    assert [(each.error_code, each.severity) for each in verdict.issues] == [
        ("GATE_TIMEOUT", "blocker")
    ]


def test_an_errand_that_takes_too_long_is_cancelled(launch: World) -> None:
    async def stuck(_site: Site) -> list[Said]:
        await anyio.sleep_forever()
        return []

    verdict = judged(launch, Gate(name="x", purpose="x", errand=stuck, local=0.05))

    assert [each.error_code for each in verdict.issues] == ["GATE_TIMEOUT"]


def test_a_gate_that_crashes_is_a_blocker_and_names_no_folder_of_this_machine(
    launch: World,
) -> None:
    def crash(site: Site) -> Iterator[Said]:
        yield "before"
        raise RuntimeError(f"cannot read {site.job.site}/a.md")

    verdict = judged(launch, Gate(name="x", purpose="x", check=crash))

    assert [each.error_code for each in verdict.issues] == ["GATE_CRASHED"]
    assert verdict.issues[0].message == "the gate failed: RuntimeError: cannot read a.md"
    assert str(launch.job.root) not in verdict.log


def test_a_gate_without_its_tool_is_a_blocker_never_a_pass(launch: World) -> None:
    verdict = judged(launch, registry.load("hugo_build"), programs={})

    assert [(each.error_code, each.severity) for each in verdict.issues] == [
        ("GATE_TOOL_MISSING", "blocker")
    ]


def test_issues_are_named_and_ordered_the_same_way_each_time(launch: World) -> None:
    said: list[Said] = [
        warning("GATE_LINT_TAB", "w", "b.md", 2),
        error("GATE_LINK_BROKEN", "e", "b.md", 9),
        error("GATE_LINK_BROKEN", "e", "a.md", 1),
        blocker("GATE_SECRET", "b", "z.md"),
        error("GATE_LINK_BROKEN", "e", "a.md", 1),
    ]
    site = anyio.run(launch.site)

    one, other = settle("g", said, site, strict=False), settle("g", said[::-1], site, strict=False)

    assert one.issues == other.issues
    assert [(each.severity, each.path) for each in one.issues] == [
        ("blocker", "z.md"),
        ("error", "a.md"),
        ("error", "b.md"),
        ("warn", "b.md"),
    ]


def test_what_a_page_said_before_the_launch_is_not_judged(tmp_path: Path) -> None:
    old = "---\ntitle: Old\n---\n# A title\n- An old bullet, __OLD__\t.\n"
    path = "content/docs/shelf/old.md"
    launch = world(tmp_path, site={path: old})
    launch.write(path, old + "- A new bullet, __NEW__.\n")

    found = {
        (issue.error_code, issue.path, issue.line)
        for gate in ("front_matter", "markdown_lint", "template_tokens", "truth_lock")
        for issue in launch.verdict(gate).issues
    }

    assert found == {("GATE_TOKEN_LEAKED", path, 6), ("GATE_TRUTH_UNMARKED", path, 6)}


def validated(job: Job) -> dict[str, Any]:
    return dict(anyio.run(validate.run, job))


@requirement("e:code:gate-failed")
def test_a_launch_without_fault_passes_and_says_so(tmp_path: Path) -> None:
    job = world(tmp_path).job

    facts = validated(job)

    assert (facts["ok"], facts["blockers"], facts["errors"], facts["warnings"]) == (True, 0, 0, 0)
    assert all(facts["gates"].values())
    report = job.json("validation_report.json")
    artifacts.check("validation_report.json", report)
    artifacts.check("truth_lock_report.json", job.json("truth_lock_report.json"))
    assert report["manual_edits"] is False
    assert set(report["toolchain"]) == {"hugo"}
    assert [gate["name"] for gate in report["gates"]] == [*facts["gates"]]
    assert all(job.has(gate["log_path"]) for gate in report["gates"])
    events = [(each["type"], each["payload"]["gate"]) for each in job.events]
    assert events[:2] == [("GATE_RUN_STARTED", "schema"), ("GATE_RUN_FINISHED", "schema")]
    finished = [gate for kind, gate in events if kind == "GATE_RUN_FINISHED"]
    assert finished == [gate["name"] for gate in report["gates"]]
    assert not (job.root / "work" / "scratch").exists()


def test_the_same_worktree_gives_the_same_bytes_in_any_folder(tmp_path: Path) -> None:
    outputs = []
    for name in ("one", "another-and-longer"):
        launch = world(tmp_path / name)
        launch.write(GUIDE, page("Guide", "Bad __TOKEN__ and [x](/nowhere/) and\tmore."))
        facts = validated(launch.job)
        outputs.append((facts, launch.job.outputs))
        for artifact in launch.job.outputs:
            assert str(tmp_path).encode() not in launch.job.read(artifact)

    assert outputs[0] == outputs[1]
    assert outputs[0][0]["ok"] is False


def test_what_was_edited_by_hand_is_an_error_unless_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "chosen", lambda _names: [registry.load("front_matter")])
    reports = []
    for allowed in (False, True):
        launch = world(tmp_path / str(allowed), config={"allow_manual_edits": allowed})
        launch.edit(GUIDE, "weight: 10", "weight: 20")
        launch.write("content/docs/shelf/note.md", page("A note", "Mine."))
        validated(launch.job)
        reports.append(launch.job.json("validation_report.json"))

    strict, lenient = reports
    files = ["content/docs/shelf/developer-guide.md", "content/docs/shelf/note.md"]
    assert [each["manual_edited_files"] for each in reports] == [files, files]
    assert [each["error_code"] for each in strict["issues"]] == ["GATE_MANUAL_EDIT"] * 2
    assert (strict["ok"], lenient["ok"]) == (False, True)


def test_a_worktree_that_moves_under_the_gates_is_a_blocker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = world(tmp_path, settings={"hugo": str(tmp_path / "none")})

    def meddle(site: Site) -> Iterator[Said]:
        launch.write(GUIDE, PAGES[GUIDE] + "\nMore.\n")
        yield f"{site.level}"

    gate = Gate(name="meddle", purpose="x", check=meddle)
    monkeypatch.setattr(registry, "chosen", lambda _names: [gate])

    facts = validated(launch.job)

    codes = {each["error_code"] for each in launch.job.json("validation_report.json")["issues"]}
    assert not facts["ok"]
    assert codes == {"GATE_WORKTREE_MOVED", "GATE_MANUAL_EDIT"}


def edited(job: Job) -> list[str]:
    async def look() -> list[str]:
        return worktree.edited(await validate.survey(job, load("plain"), job.root))

    return anyio.run(look)


def test_a_later_patch_is_no_edit_by_hand_once_it_was_applied(tmp_path: Path) -> None:
    launch = world(tmp_path)
    text = PAGES[GUIDE]
    patch = update_range(GUIDE, text, 3, 3, "weight: 20\n")
    launch.edit(GUIDE, "weight: 10", "weight: 20")
    job = launch.job
    job.write("patch_bundle.delta.1.json", bundle([patch]))
    planned = replace(job, inputs={**job.inputs, **job.outputs})
    applied = replace(planned, facts={**job.facts, "fix:1": {}, "apply:fix:1": {}})

    assert edited(planned) == [GUIDE]
    assert edited(applied) == []


def test_a_strict_profile_takes_no_warning(tmp_path: Path) -> None:
    oks = {}
    for level, strictness in (("local", ""), ("ci", "relaxed"), ("ci", "strict"), ("prod", "")):
        config = {"validation_profile": level, "ci_strictness": strictness}
        oks[level, strictness] = validate.strict(config)

    assert oks == {
        ("local", ""): False,
        ("ci", "relaxed"): False,
        ("ci", "strict"): True,
        ("prod", ""): True,
    }


@requirement("e:code:toolchain")
def test_a_strict_profile_without_hugo_cannot_validate(tmp_path: Path) -> None:
    launch = world(
        tmp_path, config={"validation_profile": "ci"}, settings={"hugo": str(tmp_path / "none")}
    )

    with pytest.raises(ToolError) as missing:
        validated(launch.job)

    assert missing.value.code is ErrorCode.TOOLCHAIN_MISSING
    assert missing.value.retryable is False
    assert missing.value.details["missing"] == ["hugo"]


def test_a_local_profile_without_hugo_says_so_in_the_report(tmp_path: Path) -> None:
    launch = world(tmp_path, settings={"hugo": str(tmp_path / "none")})

    facts = validated(launch.job)

    assert facts["gates"]["hugo_build"] is False
    assert facts["gates"]["internal_links"] is True
    assert facts["blockers"] == 1


def test_a_run_may_do_without_the_gate_of_the_configuration(tmp_path: Path) -> None:
    launch = world(
        tmp_path,
        config={"hugo": {"use_config_gate": False}},
        settings={"hugo": str(tmp_path / "none")},
    )

    gates = validated(launch.job)["gates"]

    assert "hugo_config" not in gates
    assert "hugo_build" in gates


def test_a_validation_that_was_killed_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    launch = world(tmp_path, settings={"hugo": str(tmp_path / "none")})
    left = launch.job.root / "work" / "scratch" / "public" / "old.html"
    left.parent.mkdir(parents=True)
    left.write_text("old")

    validated(launch.job)

    assert not left.exists()


def test_the_truth_report_lists_pages_and_what_is_unresolved(tmp_path: Path) -> None:
    launch = world(tmp_path, settings={"hugo": str(tmp_path / "none")})
    launch.write(START, page("Start", f"- A claim. <!-- claim_id: {'e' * 64} -->"))

    validated(launch.job)

    report = launch.job.json("truth_lock_report.json")
    assert report["ok"] is False
    assert report["unresolved_claim_ids"] == ["e" * 64]
    assert {"path": START, "claim_ids": ["e" * 64]} in report["pages"]
    assert json.dumps(report["issues"])
