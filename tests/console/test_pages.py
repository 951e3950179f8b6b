"""Tests of the pages over HTTP: what every page sends, and that nothing hostile gets through."""

import json
import re
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from tests.console.conftest import HOSTILE_NAME
from tests.support.console import ConsoleBrowser
from tests.support.http_client import parse_events

PAGES = (
    "/",
    "/?q=greet",
    "/?q=*&lang=python&mode=code",
    "/console/index",
    "/console/file?path=app/greeting.py&line=2&name=greet",
    f"/console/file?path={quote('app/' + HOSTILE_NAME)}",
    "/console/references?name=greet",
    "/console/runs",
    "/console/findings",
    "/console/skills",
    "/console/skills/hostile",
    "/console/assets",
    "/console/assets/schema?name=tone",
    "/console/assets/example?path=Tone_Example.json",
    "/console/assets/validate",
    "/console/assets/diff",
    "/console/tools",
    "/console/tools/search",
    "/console/tools/launch_start_run",
    "/console/activity",
    "/console/settings",
    "/console/contract",
)


class ActivePartFinder(HTMLParser):
    """Collects whatever could run or load something that is not ours."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in {"img", "iframe", "object", "embed", "style", "base"}:
            self.found.append(tag)
        if tag == "script" and not (values.get("src") or "").startswith("/console/static/"):
            self.found.append("script")
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.found.append(f"{tag} {name}")
            if name in {"href", "src", "action"} and (value or "").lower().startswith(("javascript:", "data:", "//")):
                self.found.append(f"{tag} {name}={value}")


def find_active_parts(html: str) -> list[str]:
    finder = ActivePartFinder()
    finder.feed(html)
    return finder.found


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_escaped_and_guarded(browser: ConsoleBrowser, path: str) -> None:
    reply = browser.get(path)
    text = reply.body.decode()

    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "same-origin"
    assert reply.headers["cache-control"] == "no-store"
    assert find_active_parts(text) == []


def test_hostile_names_and_code_are_shown_as_text(browser: ConsoleBrowser) -> None:
    text = browser.get("/?q=greet").body.decode()

    assert "&lt;img src=x onerror=alert(1)&gt;.py" in text
    assert "&lt;script&gt;" in text


def test_a_fragment_is_a_part_of_the_page(browser: ConsoleBrowser) -> None:
    page, fragment = browser.get("/?q=greet").body, browser.get_fragment("/?q=greet").body

    assert b"<!doctype html>" in page
    assert b"<!doctype" not in fragment
    assert b'class="hit card"' in fragment


def test_programs_still_get_the_api(browser: ConsoleBrowser) -> None:
    assert browser.web.get("/").headers["location"] == "/docs"
    assert browser.web.get("/search?q=greet").json["ok"] is True
    assert browser.web.get("/tools").json["ok"] is True
    assert browser.web.get("/docs").status == 200


def test_references_link_to_their_lines(browser: ConsoleBrowser) -> None:
    text = browser.get_fragment("/console/references?name=greet").body.decode()

    assert "/console/file?path=app%2Fuse.py&amp;line=5&amp;name=greet#L5" in text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/console/nothing", 404),
        ("/console/tools/nothing", 404),
        ("/console/calls/nothing", 404),
        ("/console/calls/nothing/events", 404),
        ("/console/runs/r_nothing", 404),
        ("/console/runs/r_nothing/events", 404),
        ("/console/skills/nothing", 404),
        ("/console/file?path=nothing.py", 404),
        ("/console/file?path=../../etc/passwd", 403),
        ("/console/file?path=app/use.py&repo=/etc", 403),
        ("/console/references?name=greet&repo=/etc", 200),
        ("/console/static/0/nothing.js", 404),
        ("/console/static/0/..%2fsessions.py", 404),
    ],
)
def test_what_is_not_there_or_not_allowed_has_its_status(browser: ConsoleBrowser, path: str, status: int) -> None:
    reply = browser.get(path)

    assert reply.status == status
    assert b"root:" not in reply.body


def test_a_repository_outside_is_refused_in_the_panel_of_references(browser: ConsoleBrowser) -> None:
    assert b"outside the folders" in browser.get_fragment("/console/references?name=root&repo=/etc").body


@pytest.mark.parametrize(
    "path",
    [
        "/console/index/build",
        "/console/tools/check_status",
        "/console/runs/r_x/actions/cancel",
        "/console/findings/x/decision",
        "/console/assets/validate",
        "/console/assets/diff",
        "/console/contract/diff",
        "/console/sign-out",
    ],
)
def test_no_change_without_the_token_of_the_form(browser: ConsoleBrowser, path: str) -> None:
    assert browser.submit(path, {}, token="").status == 403
    assert browser.submit(path, {}, token="0" * 64).status == 403
    cross_site = browser.submit(path, {}, **{"sec-fetch-site": "cross-site"})
    assert cross_site.status == 403
    foreign = browser.submit(path, {}, origin="https://evil.example")
    assert foreign.status == 403
    assert browser.web.post(path, {}).status == 400


def test_a_tool_is_called_with_its_form(browser: ConsoleBrowser) -> None:
    reply = browser.submit("/console/tools/search", {"arg.query": "greet", "arg.top": "1", "arg.lang": "python"})
    assert reply.status == 303
    text = browser.get(reply.headers["location"]).body.decode()

    assert '<span class="badge good">done</span>' in text
    assert "greet" in text
    assert "curl -s http://" in text
    assert "tools/call" in text

    events = parse_events(browser.get(reply.headers["location"] + "/events").body)
    assert [name for name, _ in events] == ["end"]
    assert events[0][1]["state"] == "done"


def test_arguments_that_do_not_fit_are_shown_at_the_form(browser: ConsoleBrowser) -> None:
    missing = browser.submit("/console/tools/search", {"arg.top": "1"})
    invalid = browser.submit("/console/tools/launch_start_run", {"arg.run_config": "{"})

    assert missing.status == invalid.status == 400
    assert b"/query" in missing.body or b"query" in missing.body
    assert b"run_config is not valid JSON" in invalid.body


def test_activity_shows_calls_without_arguments(browser: ConsoleBrowser) -> None:
    browser.web.call_tool("search", query="a very secret needle")

    text = browser.get("/console/activity").body.decode()

    assert "<code>search</code>" in text
    assert "anyone" in text
    assert "secret needle" not in text


def test_an_asset_is_validated_with_errors_at_their_place(browser: ConsoleBrowser) -> None:
    asset = '{\n  "name": "<b>x</b>",\n  "waveform": "square",\n  "frequency": "loud"\n}'

    broken = browser.submit("/console/assets/validate", {"schema": "tone", "asset": asset}).body.decode()
    unreadable = browser.submit("/console/assets/validate", {"schema": "tone", "asset": "{\n "}).body.decode()

    row = broken.partition('data-line="4"')[2].partition("</tr>")[0]
    assert "<code>/frequency</code>" in row
    assert "<b>x" not in broken
    assert "Not JSON" in unreadable


def test_two_assets_are_compared(browser: ConsoleBrowser) -> None:
    text = browser.submit("/console/assets/diff", {"base": '{"a": 1}', "new": '{"a": 2, "b": 3}'}).body.decode()

    assert "2 changes" in text
    assert "/a" in text


def test_a_contract_is_compared_with_a_witness(browser: ConsoleBrowser) -> None:
    snapshot = json.loads(browser.get("/console/contract/snapshot").body)
    snapshot["tools"]["show_file"]["inputSchema"]["properties"]["context"]["maximum"] *= 2

    text = browser.submit("/console/contract/diff", {"old": json.dumps(snapshot), "new": ""}).body.decode()

    assert "INPUT_NARROWED" in text
    assert "Accepted before, refused now" in text
    assert browser.submit("/console/contract/diff", {"old": "[]", "new": ""}).status == 400


def test_an_index_is_built_in_the_background(browser: ConsoleBrowser) -> None:
    reply = browser.submit("/console/index/build", {"full": "true"})
    assert reply.status == 303
    text = browser.get(reply.headers["location"]).body.decode()
    if match := re.search(r'data-live-call="([^"]+)"', text):
        events = parse_events(browser.get(f"/console/calls/{match[1]}/events").body)
        assert events[-1][0] == "end"
        assert events[-1][1]["state"] == "done"

    assert "up to date" in browser.get("/").body.decode()


def test_scripts_and_styles_may_be_kept_for_good(browser: ConsoleBrowser) -> None:
    addresses = set(re.findall(r'"(/console/static/[^"]+)"', browser.get("/").body.decode()))

    assert len(addresses) >= 4
    for address in addresses:
        reply = browser.get(address)
        assert reply.status == 200
        assert "immutable" in reply.headers["cache-control"]


def test_the_first_view_is_small(browser: ConsoleBrowser) -> None:
    page = browser.get("/")
    files = [browser.get(path) for path in set(re.findall(r'"(/console/static/[^"]+)"', page.body.decode()))]

    assert len(page.body) + sum(len(file.body) for file in files) < 100_000
