"""The browser: Chromium of the system, driven by Playwright; every fault that a page reports fails its test."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.stage import ConsoleStage, open_stage

CHROMIUM_PATH = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
CHROMIUM_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ACTION_TIMEOUT_MS = 60_000
"""The time that a step may take on a busy machine."""

expect.set_options(timeout=ACTION_TIMEOUT_MS)

WATCH_SCRIPT = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(event.violatedDirective + " " + event.blockedURI);
});
"""

WIDE, NARROW = (1280, 860), (390, 844)

OpenPage = Callable[..., Page]


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleStage]:
    with open_stage(tmp_path_factory.mktemp("stage")) as console_stage:
        yield console_stage


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM_PATH, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


class PageWatcher:
    """Collects what must not happen on a page."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.expected: tuple[str, ...] = ()

    def watch(self, page: Page) -> None:
        page.on("console", self._record_message)
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("dialog", self._record_dialog)

    def _record_message(self, message: Any) -> None:
        if message.type in {"error", "warning"} and not any(text in message.text for text in self.expected):
            self.faults.append(f"console: {message.text}")

    def _record_dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@contextmanager
def watch_pages(chromium: Browser, base_url: str) -> Iterator[OpenPage]:
    """Yield a function that opens pages; at the end none of them may have reported a fault."""
    contexts = []
    pages: list[tuple[Page, PageWatcher]] = []

    def open_page(
        path: str, *, theme: str = "light", size: tuple[int, int] = WIDE, expected: tuple[str, ...] = ()
    ) -> Page:
        context = chromium.new_context(
            base_url=base_url,
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if theme == "dark" else "light",
        )
        context.set_default_timeout(ACTION_TIMEOUT_MS)
        context.add_init_script(WATCH_SCRIPT)
        contexts.append(context)
        page = context.new_page()
        watcher = PageWatcher()
        watcher.expected = expected
        watcher.watch(page)
        page.goto(path)
        pages.append((page, watcher))
        return page

    yield open_page
    faults = [fault for _, watcher in pages for fault in watcher.faults]
    for page, _ in pages:
        if not page.is_closed():
            faults += page.evaluate("window.violations")
            assert page.evaluate("window.owned") is None
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def open_page(chromium: Browser, stage: ConsoleStage) -> Iterator[OpenPage]:
    with watch_pages(chromium, stage.web.url) as opener:
        yield opener
