"""Journeys through findings, skills, assets, tools, the contract, and signing in; and hostile content everywhere."""

import json
import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.conftest import OpenPage, watch_pages
from tests.browser.stage import ConsoleStage
from tests.support.http_client import CLEATS_COMMAND, run_web_server


def test_a_finding_is_decided_with_a_reason_and_an_expiry(open_page: OpenPage, stage: ConsoleStage) -> None:
    page = open_page("/console/findings?severity=high")
    page.get_by_role("link", name="SQL built from strings").click()
    expect(page.locator("tr.marked")).to_contain_text("SELECT * FROM orders")

    page.locator("#status").select_option("accept")
    page.locator("#justification").fill("Only our own clerks use it")
    page.locator("#expires").fill("2099-01-31")
    page.get_by_role("button", name="Record the decision").click()

    expect(page.locator(".notice.good")).to_contain_text("The decision is recorded.")
    expect(page.locator(".history")).to_contain_text("Only our own clerks use it")
    expect(page.locator(".history")).to_contain_text("2099-01-31")
    expect(page.get_by_text("Location:")).to_be_visible()

    listed = open_page("/console/findings?severity=high")  # the index does not have the decision yet
    expect(listed.locator("tbody tr")).to_contain_text("Accept the risk")
    stage.web.call_tool("build_index", incremental=True)
    decided = open_page("/console/findings?status=accept")
    expect(decided.locator("tbody tr")).to_contain_text("Accept the risk")
    expect(open_page("/console/findings?status=open").locator("tbody")).not_to_contain_text("SQL built")

    finding = page.url.partition("/findings/")[2].partition("?")[0]
    stage.web.call_tool("triage_decision", finding=finding, status="fix", justification="A placeholder does it")
    stage.web.call_tool("build_index", incremental=True)
    expect(open_page("/console/findings?severity=high").locator("tbody tr")).to_contain_text("Fix it")


def test_a_filter_without_findings_leads_back_to_all(open_page: OpenPage) -> None:
    page = open_page("/console/findings?q=nothing+like+this")
    expect(page.locator(".empty")).to_contain_text("No findings that match")
    page.get_by_role("link", name="Show all findings").click()
    expect(page.locator("tbody tr").first).to_be_visible()


def test_hostile_findings_and_skills_are_only_text(open_page: OpenPage) -> None:
    page = open_page("/console/findings")
    page.get_by_role("link", name=re.compile("Hostile")).click()
    expect(page.locator("h1")).to_contain_text("window.owned")

    skill = open_page("/console/skills/hostile")
    expect(skill.locator(".preview h1")).to_contain_text("window.owned")
    expect(skill.locator(".preview a")).to_have_count(1)
    assert skill.locator(".preview a").get_attribute("href") == "https://evil.example/x.png"

    search = open_page("/?q=hostile+orders")
    hit = search.locator(".hit", has_text="onerror=alert(1)").first
    expect(hit).to_contain_text("hostile_orders")
    hit.locator("a[data-open]").click()
    expect(search.locator("h1")).to_contain_text("onerror=alert(1)")


def test_skills_are_shown_as_agents_get_them(open_page: OpenPage) -> None:
    page = open_page("/console/skills")
    expect(page.locator("pre").last).to_contain_text("skills in")
    page.get_by_role("link", name="release-notes").click()
    expect(page.locator("pre").first).to_contain_text("Loading: release-notes")


def test_an_asset_is_validated_and_compared(open_page: OpenPage) -> None:
    page = open_page("/console/assets")
    page.get_by_role("link", name="Validate by tone").click()
    page.locator("#asset").fill('{\n  "name": "lead",\n  "waveform": "triangle",\n  "frequency": "high"\n}')
    page.get_by_role("button", name="Validate").click()
    expect(page.locator(".inline-error")).to_contain_text("/frequency")
    page.locator("#asset").fill('{"name": "lead", "waveform": "triangle", "frequency": 440}')
    page.get_by_role("button", name="Validate").click()
    expect(page.locator(".notice.good")).to_contain_text("valid")

    page.get_by_role("link", name="Compare").click()
    page.evaluate(
        """() => {
          const files = new DataTransfer();
          files.items.add(new File(['{"a": 1}'], "a.json"));
          document.getElementById("base").dispatchEvent(new DragEvent("drop", {dataTransfer: files, cancelable: true}));
        }"""
    )
    expect(page.locator("#base")).to_have_value('{"a": 1}')
    page.locator("#new").fill('{"a": 2}')
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_a_tool_is_called_and_its_equivalents_are_shown(open_page: OpenPage) -> None:
    page = open_page("/console/tools")
    page.get_by_role("link", name="Search code").click()
    page.locator("#field-query").fill("orders")
    page.get_by_role("button", name="Call search").click()
    expect(page.locator(".badge.good")).to_have_text("done")
    expect(page.get_by_text("curl -s http://")).to_be_visible()
    expect(page.get_by_text('"method": "tools/call"')).to_be_visible()

    destructive = open_page("/console/tools/clean_artifacts")
    destructive.get_by_role("button", name="Call clean_artifacts").click()
    expect(destructive.locator("#confirm")).to_be_visible()
    destructive.get_by_role("button", name="Go back").click()

    activity = open_page("/console/activity?all=1")
    expect(activity.locator("table").first).to_contain_text("search")


def test_two_contracts_are_compared_with_witnesses(open_page: OpenPage, stage: ConsoleStage) -> None:
    snapshot = json.loads(stage.web.get("/console/contract/snapshot").body)
    snapshot["tools"]["show_file"]["inputSchema"]["properties"]["context"]["maximum"] *= 2
    page = open_page("/console/contract")
    page.locator("#old").fill(json.dumps(snapshot))
    page.get_by_role("button", name="Compare").click()

    expect(page.locator(".contract-finding")).to_contain_text("INPUT_NARROWED")
    expect(page.locator(".contract-finding pre")).to_contain_text("20000")
    expect(page.get_by_text("Last check")).to_be_visible()


def test_a_token_opens_the_console_and_signing_out_closes_it(chromium: Browser, tmp_path: Path) -> None:
    with (
        run_web_server(*CLEATS_COMMAND, home=tmp_path, CLEATS_HTTP_TOKEN="correct horse") as web,
        watch_pages(chromium, web.url) as open_page,
    ):
        page = open_page("/console/tools", expected=("401",))
        expect(page).to_have_url(re.compile("/console/sign-in"))
        page.locator("#token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("Invalid token.")
        page.locator("#token").fill("correct horse")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("h1")).to_have_text("Tools")
        assert page.evaluate("document.cookie") == ""
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_url(re.compile("/console/sign-in"))
