"""Tests of browser sessions and of the tokens of forms."""

from cleats.console.sessions import MAX_SESSIONS, SESSION_SECONDS, BrowserSessions
from cleats.console.sign_in import read_next_path


def test_a_session_belongs_to_its_token_until_it_expires() -> None:
    now = [0.0]
    sessions = BrowserSessions(7345, clock=lambda: now[0])
    cookie = f"{sessions.cookie_name}={sessions.open_session('ci')}"

    assert sessions.find_caller(cookie) == "ci"
    now[0] = SESSION_SECONDS - 1
    assert sessions.find_caller(f"other=1; {cookie}") == "ci"
    now[0] = SESSION_SECONDS
    assert sessions.find_caller(cookie) is None


def test_a_closed_or_foreign_session_is_unknown() -> None:
    sessions, others = BrowserSessions(1), BrowserSessions(1)
    cookie = f"{sessions.cookie_name}={sessions.open_session('ci')}"

    assert others.find_caller(cookie) is None
    sessions.close_session(cookie)
    assert sessions.find_caller(cookie) is None
    assert sessions.find_caller("") is None
    assert sessions.find_caller("cleats_session_1=" + "x" * 10_000) is None


def test_the_oldest_session_ends_for_one_too_many() -> None:
    sessions = BrowserSessions(1)
    cookies = [f"{sessions.cookie_name}={sessions.open_session(str(number))}" for number in range(MAX_SESSIONS + 1)]

    assert sessions.find_caller(cookies[0]) is None
    assert sessions.find_caller(cookies[1]) == "1"
    assert sessions.find_caller(cookies[-1]) == str(MAX_SESSIONS)


def test_a_form_token_holds_for_its_own_session_only() -> None:
    sessions = BrowserSessions(1)
    one = f"{sessions.cookie_name}={sessions.open_session('a')}"
    other = f"{sessions.cookie_name}={sessions.open_session('a')}"

    assert sessions.is_form_token(one, sessions.make_form_token(one))
    assert not sessions.is_form_token(other, sessions.make_form_token(one))
    assert not sessions.is_form_token("", sessions.make_form_token(one))
    assert not sessions.is_form_token(one, "")
    assert not BrowserSessions(1).is_form_token("", sessions.make_form_token(""))


def test_signing_in_leads_to_pages_of_this_server_only() -> None:
    assert read_next_path("/console/runs?state=DONE") == "/console/runs?state=DONE"
    for path in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "x", "/a\nb"):
        assert read_next_path(path) == "/"
