"""Journeys of somebody who searches: words, filters, files, references, links, and the index."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import ConsoleStage


def test_results_appear_while_typing_and_can_be_shared(open_page: OpenPage) -> None:
    page = open_page("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.locator("#q").press_sequentially("orders customer", delay=20)

    first = page.locator(".hit").first
    expect(first).to_contain_text("shop/web.py")
    expect(first.locator("tr.marked").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?q=orders\+customer"))
    first.get_by_text("Why it matched").click()
    expect(first.locator("meter").first).to_be_visible()
    expect(first.locator(".flow")).to_contain_text("request.args")
    expect(first.locator(".flow")).to_contain_text("sql.query")

    other = open_page(page.url)
    expect(other.locator("#q")).to_have_value("orders customer")
    expect(other.locator(".hit").first).to_contain_text("shop/web.py")


def test_a_filter_is_a_chip_with_the_name_of_the_command(open_page: OpenPage) -> None:
    page = open_page("/?q=cart")
    page.get_by_text("Add filter").click()
    page.locator("#filter-name").select_option("type")
    page.locator("#filter-value").fill("class")
    page.locator("#filter-add").click()

    expect(page.locator(".chip.set")).to_contain_text("--type class")
    expect(page).to_have_url(re.compile("type=class"))
    expect(page.locator(".hit .kind").first).to_have_text("class")

    page.locator(".chip-remove").click()
    expect(page.locator(".chip.set")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("type=class"))
    page.locator("input[name=mode][value=code]").check()
    expect(page).to_have_url(re.compile("mode=code"))


def test_enter_in_the_value_of_a_filter_adds_it(open_page: OpenPage) -> None:
    page = open_page("/?q=cart")
    page.get_by_text("Add filter").click()
    page.locator("#filter-name").select_option("lang")
    expect(page.locator("#filter-value")).to_be_focused()
    page.keyboard.type("python")
    page.keyboard.press("Enter")

    expect(page.locator(".chip.set")).to_contain_text("--lang python")
    expect(page).to_have_url(re.compile("lang=python"))


def test_from_a_hit_to_the_file_and_to_a_reference(open_page: OpenPage) -> None:
    page = open_page("/?q=orders+customer")
    page.locator(".hit a[data-open]").first.click()
    expect(page.locator("h1")).to_contain_text("web.py")
    expect(page.locator("tr.marked").first).to_be_visible()
    expect(page.locator(".outline")).to_contain_text("products")

    page.locator("#L11 code span", has_text="connect").click()
    expect(page.locator("#reference-name")).to_have_value("connect")
    page.locator("#L10 code span", has_text="database").click()
    expect(page.locator("#references")).to_contain_text("shop/web.py")
    page.locator("#references a", has_text="26").click()
    expect(page).to_have_url(re.compile("line=26"))
    expect(page.locator("#L26")).to_have_class("marked")


def test_the_same_search_is_copied_for_agents_and_terminals(open_page: OpenPage) -> None:
    page = open_page("/?q=orders&lang=python")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    page.get_by_role("button", name="Copy as command").click()
    expect(page.locator("#toast")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "cleats search orders --lang python"
    page.get_by_role("button", name="Copy as agent call").click()
    assert '"lang": "python"' in page.evaluate("navigator.clipboard.readText()")


def test_keys_move_through_hits(open_page: OpenPage) -> None:
    page = open_page("/?q=order")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".hit.selected")).to_have_count(1)
    expect(page.locator(".hit").nth(1)).to_have_class(re.compile("selected"))
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator(".file-layout")).to_be_visible()

    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).not_to_be_visible()
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_an_index_is_built_and_a_build_is_cancelled(open_page: OpenPage, stage: ConsoleStage) -> None:
    page = open_page(f"/?repo={stage.big_repository}")
    panel = page.locator("#index-panel")
    expect(panel).to_contain_text("no index")
    panel.get_by_role("button", name="Build the index").click()
    expect(page.locator("progress")).to_be_visible()
    expect(page.locator("[data-progress-text]")).to_contain_text(re.compile("files|looking|reading|of"))
    page.get_by_role("button", name="Cancel").click()
    expect(panel).to_contain_text("no index")

    shop = open_page("/")
    shop.get_by_role("button", name="Build it from scratch").click()
    expect(shop.locator("#index-panel .badge")).to_have_text("up to date")


def test_a_search_without_an_index_builds_it_in_place(open_page: OpenPage, stage: ConsoleStage) -> None:
    page = open_page(f"/?q=settings&repo={stage.big_repository}")
    expect(page.locator("#results")).to_contain_text("big has no index yet")
    page.get_by_role("button", name="Build the index").click()
    expect(page.locator("#results")).to_contain_text("The index of big is being built")
    expect(page).to_have_url(re.compile("q=settings"))
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#results")).to_contain_text("big has no index yet")
    expect(page).to_have_url(re.compile("q=settings"))

    small = open_page(f"/?q=greetings&repo={stage.home / 'site'}")
    small.get_by_role("button", name="Build the index").click()
    expect(small.locator(".hit").first).to_be_visible()
    expect(small.locator("#q")).to_have_value("greetings")


def test_several_repositories_are_searched_at_once(open_page: OpenPage) -> None:
    page = open_page("/?q=convert")
    page.get_by_text("Repositories").click()
    page.locator("label.check", has_text="source").first.locator("input").check()
    page.locator("label.check", has_text="shop").first.locator("input").check()

    expect(page).to_have_url(re.compile("repo=.*repo="))
    expect(page.locator(".hit-meta .badge", has_text="source").first).to_be_visible()
