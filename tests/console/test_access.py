"""Tests of signing in, and of the limits of tokens on every page and stream."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cleats.console.sign_in import FAILED_SIGN_INS_PER_MINUTE
from cleats.transports.http.tokens import AccessToken, format_entry, hash_token
from tests.support.console import ConsoleBrowser
from tests.support.http_client import CLEATS_COMMAND, WebServer, run_web_server

ADMIN_SECRET, SKILLS_SECRET = "admin-secret", "skills-secret"

AREA_PATHS = {
    "code": ["/?q=x", "/console/index", "/console/file?path=a.py", "/console/findings", "/console/findings/x"],
    "explore": ["/console/references?name=x"],
    "launch": [
        "/console/runs",
        "/console/runs/r_x",
        "/console/runs/r_x/events",
        "/console/runs/r_x/pages",
        "/console/runs/r_x/changes",
        "/console/runs/r_x/artifacts",
        "/console/runs/r_x/artifacts/a.json",
    ],
    "assets": ["/console/assets", "/console/assets/validate", "/console/assets/diff", "/console/assets/schema?name=x"],
}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    home = tmp_path_factory.mktemp("access")
    (home / "repo").mkdir()
    tokens = [
        AccessToken(name="admin", sha256=hash_token(ADMIN_SECRET)),
        AccessToken(name="reader", sha256=hash_token(SKILLS_SECRET), toolsets=("skills",)),
        AccessToken(name="slow", sha256=hash_token("slow"), per_minute=1.0, burst=2),
    ]
    file = home / "tokens.toml"
    file.write_text("\n".join(map(format_entry, tokens)))
    file.chmod(0o600)
    command = (*CLEATS_COMMAND, "--repo", str(home / "repo"))
    with run_web_server(*command, home=home, CLEATS_HTTP_TOKENS=str(file), CLEATS_TELEMETRY="off") as server:
        yield server


@pytest.fixture
def admin(web: WebServer) -> ConsoleBrowser:
    browser = ConsoleBrowser(web)
    assert browser.sign_in(ADMIN_SECRET).status == 303
    return browser


@pytest.fixture
def reader(web: WebServer) -> ConsoleBrowser:
    browser = ConsoleBrowser(web)
    assert browser.sign_in(SKILLS_SECRET).status == 303
    return browser


def test_without_a_session_every_page_leads_to_signing_in(web: WebServer) -> None:
    browser = ConsoleBrowser(web)
    for path in ("/", "/console/tools", "/console/runs/r_x/events", "/console/contract/snapshot", "/console/nothing"):
        reply = browser.get(path)

        assert reply.status == 303
        assert reply.headers["location"].startswith("/console/sign-in")
    assert browser.get_fragment("/console/activity").status == 401
    assert browser.submit("/console/tools/check_status", {}, token="x").status == 401


def test_the_cookie_cannot_be_read_or_sent_by_other_sites(web: WebServer) -> None:
    browser = ConsoleBrowser(web)
    reply = browser.sign_in(ADMIN_SECRET, "/console/tools")

    assert (reply.status, reply.headers["location"]) == (303, "/console/tools")
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"cleats_session_{web.port}=")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert "secure" not in cookie.lower()
    assert ADMIN_SECRET not in cookie


def test_behind_tls_the_cookie_is_for_tls_only(web: WebServer) -> None:
    browser = ConsoleBrowser(web)
    token = browser.read_form_token("/console/sign-in")
    origin = f"https://127.0.0.1:{web.port}"

    reply = browser.submit("/console/sign-in", {"token": ADMIN_SECRET}, token=token, origin=origin)

    assert reply.status == 303
    assert "; secure" in reply.headers["set-cookie"].lower()


def test_a_wrong_token_is_refused(web: WebServer) -> None:
    browser = ConsoleBrowser(web)
    reply = browser.sign_in("wrong")

    assert reply.status == 401
    assert b"Invalid token." in reply.body
    assert "set-cookie" not in reply.headers


def test_a_session_does_not_open_the_api(admin: ConsoleBrowser) -> None:
    for path in ("/tools", "/health", "/docs", "/mcp"):
        assert admin.get(path).status == 401


def test_a_header_with_the_token_opens_pages_too(web: WebServer) -> None:
    browser = ConsoleBrowser(web)

    assert browser.get("/console/tools", authorization=f"Bearer {ADMIN_SECRET}").status == 200
    assert browser.get("/console/tools", authorization="Bearer wrong").status == 401


def test_signing_out_ends_the_session(admin: ConsoleBrowser) -> None:
    cookies = dict(admin.cookies)

    assert admin.submit("/console/sign-out", {}).status == 303
    admin.cookies = cookies
    assert admin.get("/console/tools").status == 303


def test_a_form_of_one_session_is_worthless_in_another(admin: ConsoleBrowser, web: WebServer) -> None:
    other = ConsoleBrowser(web)
    other.sign_in(ADMIN_SECRET)

    assert other.submit("/console/tools/check_status", {}, token=admin.read_form_token()).status == 403
    assert other.submit("/console/tools/check_status", {}).status == 303


@pytest.mark.parametrize("path", [path for paths in AREA_PATHS.values() for path in paths if path != "/?q=x"])
def test_a_page_of_other_toolsets_does_not_exist_for_a_limited_token(reader: ConsoleBrowser, path: str) -> None:
    assert reader.get(path).status == 404


def test_a_limited_token_sees_only_its_areas_and_tools(reader: ConsoleBrowser) -> None:
    page = reader.get("/console/tools").body.decode()

    assert reader.get("/").headers["location"] == "/console/tools"
    assert 'href="/console/skills"' in page
    assert 'href="/console/runs"' not in page
    assert "launch_start_run" not in page
    assert reader.get("/console/tools/search").status == 404
    assert reader.submit("/console/tools/search", {"arg.query": "x"}, token="").status == 404
    assert reader.get("/console/settings").status == 404
    assert b'"search"' not in reader.get("/console/contract/snapshot").body


def test_a_call_belongs_to_the_token_that_made_it(admin: ConsoleBrowser, reader: ConsoleBrowser) -> None:
    location = admin.submit("/console/tools/check_status", {}).headers["location"]

    assert admin.get(location).status == 200
    for path in (location, f"{location}/events"):
        assert reader.get(path).status == 404
    assert reader.submit(f"{location}/cancel", {}, token=reader.read_form_token("/console/tools")).status == 404


def test_a_limited_token_does_not_see_the_calls_of_others(admin: ConsoleBrowser, reader: ConsoleBrowser) -> None:
    headers = {"authorization": f"Bearer {ADMIN_SECRET}", "content-type": "application/json"}
    admin.web.send_request("POST", "/tools/skill", b'{"name": "nothing"}', headers)

    assert b"<td>admin</td>" in admin.get("/console/activity").body
    assert b"admin" not in reader.get("/console/activity").body


def test_pages_count_as_requests_of_the_token(web: WebServer) -> None:
    browser = ConsoleBrowser(web)
    browser.sign_in("slow")

    assert [browser.get("/console/tools").status for _ in range(3)] == [200, 200, 429]


def test_pages_of_allowed_origins_may_not_use_the_console(tmp_path: Path) -> None:
    origin = "https://app.example"
    with run_web_server(home=tmp_path, CLEATS_HTTP_ORIGINS=origin) as web:
        browser = ConsoleBrowser(web)

        assert web.get("/health", origin=origin).headers["access-control-allow-origin"] == origin
        refused = browser.get("/console/tools", origin=origin)
        assert refused.status == 403
        own = browser.get("/console/tools", origin=f"http://127.0.0.1:{web.port}")
        assert own.status == 200
        assert "access-control-allow-origin" not in own.headers
        assert browser.get("/console/tools", host="evil.example").status == 403


def test_guessing_tokens_is_slowed_down(tmp_path: Path) -> None:
    with run_web_server(home=tmp_path, CLEATS_HTTP_TOKEN="correct horse") as web:
        browser = ConsoleBrowser(web)
        statuses = [browser.sign_in(f"wrong {number}").status for number in range(FAILED_SIGN_INS_PER_MINUTE + 5)]

        assert statuses[:FAILED_SIGN_INS_PER_MINUTE] == [401] * FAILED_SIGN_INS_PER_MINUTE
        assert statuses[-1] == 429
        assert browser.sign_in("correct horse").status == 303
