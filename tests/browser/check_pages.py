"""Every page in both themes and two widths: no fault, no accessibility violation, nothing wider than the screen."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import NARROW, WIDE, OpenPage
from tests.browser.stage import HOSTILE_FILE, ConsoleStage

AXE_OPTIONS = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}

PAGES = {
    "home": "/",
    "search": "/?q=orders+of+a+customer",
    "filtered": "/?q=*&lang=python&type=function",
    "nothing-found": "/?q=%22no+such+words+at+all%22",
    "file": "/console/file?path=shop/web.py&line=14&end=19&name=database",
    "hostile-file": f"/console/file?path=shop/{HOSTILE_FILE.replace(' ', '%20')}",
    "runs": "/console/runs",
    "run": "/console/runs/{run_id}",
    "run-pages": "/console/runs/{run_id}/pages",
    "run-source": "/console/runs/{run_id}/pages?view=source",
    "run-changes": "/console/runs/{run_id}/changes",
    "run-artifacts": "/console/runs/{run_id}/artifacts",
    "run-artifact": "/console/runs/{run_id}/artifacts/page_plan.json",
    "findings": "/console/findings",
    "skills": "/console/skills",
    "skill": "/console/skills/release-notes",
    "assets": "/console/assets",
    "asset-schema": "/console/assets/schema?name=tone",
    "asset-validate": "/console/assets/validate",
    "asset-diff": "/console/assets/diff",
    "tools": "/console/tools",
    "tool": "/console/tools/search",
    "tool-config": "/console/tools/launch_start_run",
    "activity": "/console/activity?all=1",
    "settings": "/console/settings",
    "contract": "/console/contract",
}


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_sound(
    open_page: OpenPage, stage: ConsoleStage, name: str, theme: str, size: tuple[int, int]
) -> None:
    page = open_page(PAGES[name].format(run_id=stage.run_id), theme=theme, size=size)

    violations = [
        f"{rule['id']}: {[node['target'] for node in rule['nodes'][:4]]}"
        for rule in Axe().run(page, options=AXE_OPTIONS).response["violations"]
    ]

    assert violations == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title().endswith("· Cleats")
