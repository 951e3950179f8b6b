"""Journeys of somebody who reviews a launch run: gates, fixes, pages, evidence, the change, the pull request."""

import json
import re

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import HOSTILE_SCRIPT, ConsoleStage


def test_a_run_is_reviewed_fixed_and_published(open_page: OpenPage, stage: ConsoleStage) -> None:
    page = open_page("/console/runs")
    page.get_by_role("link", name="measurekit").last.click()
    expect(page.locator("#run-state")).to_have_text("Ready for the pull request")
    expect(page.locator(".gates")).to_contain_text("truth lock")

    page.get_by_role("link", name="Pages", exact=True).click()
    expect(page.locator(".preview")).to_contain_text("Features")
    page.locator(".claim-ref").first.click()
    expect(page.locator("#claim-1")).to_contain_text("README.md")
    page.get_by_role("link", name="Source", exact=True).click()
    expect(page.locator(".beside .code")).to_contain_text("claims:")
    page.get_by_role("link", name="Changes", exact=True).click()
    expect(page.locator(".diff-file").first).to_contain_text("content/docs/measurekit/_index.md")
    page.get_by_role("link", name="Artifacts", exact=True).click()
    page.get_by_role("link", name="page_plan.json").click()
    expect(page.locator(".code")).to_contain_text("effective_quotas")

    site_page = stage.find_run_page(stage.run_id)
    site_page.write_text(site_page.read_text() + "\nSee [more](/docs/measurekit/not-there/).\n")
    page.get_by_role("link", name="Overview", exact=True).click()
    page.get_by_role("button", name="Validate").click()
    expect(page.locator("#run-state")).to_have_text("Checking")
    expect(page.locator(".gate-findings").first).to_contain_text("not-there")
    page.get_by_role("link", name="Pages", exact=True).click()
    expect(page.locator(".preview")).to_contain_text("See more")  # as the site has it, not as it was drafted
    page.get_by_role("link", name="Overview", exact=True).click()
    page.get_by_role("button", name="Fix the next issue").click()
    expect(page.locator("#run-state")).to_have_text("Ready for the pull request")

    page.get_by_role("button", name="Open the pull request").first.click()
    expect(page.locator("#confirm")).to_be_visible()
    page.get_by_role("button", name="Go back").click()
    expect(page.locator("#run-state")).to_have_text("Ready for the pull request")
    page.get_by_role("button", name="Open the pull request").first.click()
    page.locator("#confirm-ok").click()
    expect(page.locator("#run-state")).to_have_text(re.compile("Done|Pull request opened"))
    expect(page.locator(".pull-request")).to_contain_text("launch/")
    expect(page.locator(".pull-request")).to_contain_text("not on GitHub")


def test_a_run_that_another_process_drives_is_followed_live(open_page: OpenPage, stage: ConsoleStage) -> None:
    answer = json.loads(
        stage.run_command("launch", "start", str(stage.home / "run.json"), "--key", "live", "--no-drive", "--json")
    )
    page = open_page(f"/console/runs/{answer['run_id']}")
    expect(page.locator("#run-state")).to_have_text("Created")

    stage.run_command("launch", "resume", answer["run_id"], "--json")

    expect(page.locator("#run-state")).to_have_text("Ready for the pull request")
    expect(page.locator(".timeline")).to_contain_text("Pages written")

    site_page = stage.find_run_page(answer["run_id"])
    site_page.write_text(site_page.read_text() + f"\n{HOSTILE_SCRIPT}\n")
    page.get_by_role("button", name="Validate").click()
    expect(page.locator(".gate-findings").first).to_be_visible()
    page.get_by_role("link", name="Changes", exact=True).click()
    expect(page.locator(".diff-file").first).to_contain_text("window.owned")
    page.get_by_role("link", name="Pages", exact=True).click()
    expect(page.locator(".preview")).to_contain_text("License")
    page.get_by_role("link", name="Overview", exact=True).click()

    page.get_by_role("button", name="Cancel the run").click()
    page.locator("#confirm-ok").click()
    expect(page.locator("#run-state")).to_have_text("Cancelled")
    filtered = open_page("/console/runs?state=CANCELLED")
    expect(filtered.locator("tbody tr")).to_have_count(1)
