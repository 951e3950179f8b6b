"""The pictures of the documentation, taken when `CLEATS_PICTURES` names a folder for them."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import watch_pages
from tests.browser.stage import open_stage

PICTURES_FOLDER = os.environ.get("CLEATS_PICTURES", "")

PICTURES = {
    "search": ("/?q=orders+of+a+customer", "dark"),
    "file": ("/console/file?path=shop/web.py&line=14&end=19&name=database", "light"),
    "run": ("/console/runs/{run_id}", "light"),
    "run-pages": ("/console/runs/{run_id}/pages", "light"),
    "findings": ("/console/findings", "light"),
    "tools": ("/console/tools", "light"),
}
"""The address and the theme of each picture."""


@pytest.mark.skipif(not PICTURES_FOLDER, reason="no pictures are asked for")
def test_the_pictures_of_the_documentation_are_taken(chromium: Browser, tmp_path: Path) -> None:
    with open_stage(tmp_path, hostile=False) as stage, watch_pages(chromium, stage.web.url) as open_page:
        for name, (path, theme) in PICTURES.items():
            page = open_page(path.format(run_id=stage.run_id), theme=theme, size=(1280, 760))
            page.reload()  # the first search also opens the index
            page.screenshot(path=Path(PICTURES_FOLDER) / f"console-{name}.png")
