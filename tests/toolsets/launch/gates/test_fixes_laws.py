"""Laws of gates and rules, on pages that nobody would write."""

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleats.toolsets.launch.gates import registry
from cleats.toolsets.launch.gates.model import FixCase
from cleats.toolsets.launch.gates.registry import run_gate
from cleats.toolsets.launch.gates.site import LaunchSite, WorktreeChange
from cleats.toolsets.launch.patching.patches import apply_patch_to_text
from cleats.toolsets.launch.profiles.model import load_named_profile
from cleats.toolsets.launch.runs.issues import Issue
from cleats.toolsets.launch.workers.fix import build_patches
from tests.support.gates import (
    GUIDE_PATH,
    PAGE_TEXTS,
    START_PATH,
    STORES_CLAIM_ID,
    TOC_PATH,
    GateRun,
    create_gate_run,
)

FIX_RULES = registry.load_fixes(registry.GATE_NAMES)
QUICK_GATES = [name for name in load_named_profile("plain").gates.prod if name not in ("hugo_build", "external_links")]
TEXT_PIECES = [
    *("__TOKEN__", "{{ x }}", "\n", "\n\n", "\t", "# ", "## ", "#### ", "- ", "1. ", "> ", "| "),
    *("```", "```python\n", "~~~\n", "`", "[", "](", "[x](/a/)", "![](x.png)", "<a href='", "'>"),
    *("<script>", "https://a.example/b", "<<<<<<< x\n", "=======\n", ">>>>>>> y\n", "---\n"),
    *("| a | b |\n| --- | --- |\n| c | is a fact of it |\n", "title: x\n", "draft: true\n", "\r\n"),
    *("\ufeff", "\u00e9", "\U0001f389", "\0", '{{< ref "x" >}}', "[a]: /b/\n", "    code\n"),
    *("pip install x\n", "shelf kit", "It is fast.", "<!-- claims: eeeeeeee -->"),
    f"<!-- claims: {STORES_CLAIM_ID} -->",
]


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> GateRun:
    return create_gate_run(tmp_path_factory.mktemp("launch"))


def judge_site(launch: GateRun) -> tuple[LaunchSite, list[Issue]]:
    site = LaunchSite(
        job=launch.job,
        profile=load_named_profile("plain"),
        level="local",
        scratch=launch.job.root,
        changes=tuple(WorktreeChange(path, "file", 0o644) for path in sorted(PAGE_TEXTS)),
    )

    async def run_gates() -> list[Issue]:
        verdicts = [await run_gate(registry.load_gate(name), site, strict=True) for name in QUICK_GATES]
        return [issue for verdict in verdicts for issue in verdict.issues]

    return site, anyio.run(run_gates)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    path=st.sampled_from([GUIDE_PATH, START_PATH, TOC_PATH]),
    edits=st.lists(st.tuples(st.floats(0, 1), st.sampled_from(TEXT_PIECES)), min_size=1, max_size=5),
)
def test_no_page_breaks_a_gate_or_a_rule(launch: GateRun, path: str, edits: list[tuple[float, str]]) -> None:
    text = PAGE_TEXTS[path]
    for place, piece in edits:
        at = int(place * len(text))
        text = text[:at] + piece + text[at:]
    launch.write_file(path, text)
    try:
        site, issues = judge_site(launch)
    finally:
        launch.write_file(path, PAGE_TEXTS[path])

    assert not {"GATE_CRASHED", "GATE_TIMEOUT"} & {issue.error_code for issue in issues}
    for code in {issue.error_code for issue in issues if issue.path == path} & FIX_RULES.keys():
        mine = [issue for issue in issues if (issue.error_code, issue.path) == (code, path)]
        answer = FIX_RULES[code](FixCase(site, mine[0], mine, text))
        page_patches = build_patches(path, text, answer)
        assert all(patch["path"] == path for patch in page_patches)
        if isinstance(answer, str) and page_patches:
            assert apply_patch_to_text(page_patches[0], text) == answer
