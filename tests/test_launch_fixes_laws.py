"""Laws of gates and rules, on pages that nobody would write."""

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleats.toolsets.launch.fixes.delta import patches
from cleats.toolsets.launch.fixes.model import Case
from cleats.toolsets.launch.fixes.table import RULES
from cleats.toolsets.launch.gates import registry
from cleats.toolsets.launch.gates.runner import judge
from cleats.toolsets.launch.gates.site import Change, Site
from cleats.toolsets.launch.issues import Issue
from cleats.toolsets.launch.patching.patches import after
from cleats.toolsets.launch.profiles.model import load
from tests.launch_gates_world import GUIDE, PAGES, START, STORES, TOC, World, world

QUICK = [name for name in registry.NAMES if name not in ("hugo_build", "external_links")]
PIECES = [
    *("__TOKEN__", "{{ x }}", "\n", "\n\n", "\t", "# ", "## ", "#### ", "- ", "1. ", "> ", "| "),
    *("```", "```python\n", "~~~\n", "`", "[", "](", "[x](/a/)", "![](x.png)", "<a href='", "'>"),
    *("<script>", "https://a.example/b", "<<<<<<< x\n", "=======\n", ">>>>>>> y\n", "---\n"),
    *("| a | b |\n| --- | --- |\n| c | is a fact of it |\n", "title: x\n", "draft: true\n", "\r\n"),
    *("\ufeff", "\u00e9", "\U0001f389", "\0", '{{< ref "x" >}}', "[a]: /b/\n", "    code\n"),
    *("pip install x\n", "shelf kit", "It is fast.", f"<!-- claim_id: {'e' * 64} -->"),
    f"<!-- claim_id: {STORES} -->",
]


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world(tmp_path_factory.mktemp("launch"))


def look(launch: World) -> tuple[Site, list[Issue]]:
    site = Site(
        job=launch.job,
        profile=load("plain"),
        level="local",
        scratch=launch.job.root,
        changes=tuple(Change(path, "file", 0o644) for path in sorted(PAGES)),
    )

    async def judged() -> list[Issue]:
        verdicts = [await judge(registry.load(name), site, strict=True) for name in QUICK]
        return [issue for verdict in verdicts for issue in verdict.issues]

    return site, anyio.run(judged)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    path=st.sampled_from([GUIDE, START, TOC]),
    edits=st.lists(st.tuples(st.floats(0, 1), st.sampled_from(PIECES)), min_size=1, max_size=5),
)
def test_no_page_breaks_a_gate_or_a_rule(
    launch: World, path: str, edits: list[tuple[float, str]]
) -> None:
    text = PAGES[path]
    for place, piece in edits:
        at = int(place * len(text))
        text = text[:at] + piece + text[at:]
    launch.write(path, text)
    try:
        site, issues = look(launch)
    finally:
        launch.write(path, PAGES[path])

    assert not {"GATE_CRASHED", "GATE_TIMEOUT"} & {issue.error_code for issue in issues}
    for code in {issue.error_code for issue in issues if issue.path == path} & RULES.keys():
        mine = [issue for issue in issues if (issue.error_code, issue.path) == (code, path)]
        answer = RULES[code](Case(site, mine[0], mine, text))
        made = patches(path, text, answer)
        assert all(patch["path"] == path for patch in made)
        if isinstance(answer, str) and made:
            assert after(made[0], text) == answer
