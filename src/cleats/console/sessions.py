"""Signing in: browser sessions that act for a token, and the proof that a change was asked for by one of our pages.

A session is a random id in a cookie. The server keeps only the hash of the id, in memory: a restart ends all sessions,
and nothing that is stored gives access. The token itself never reaches the browser's storage.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from secrets import token_bytes, token_urlsafe
from time import monotonic
from typing import Final

SESSION_SECONDS: Final = 12 * 3600
"""The life of a session: a working day, after which the token is asked for again."""

MAX_SESSIONS: Final = 1000
"""The number of sessions that are kept; the oldest ends for one more."""

MAX_COOKIE_CHARS: Final = 8192
"""The length of a Cookie header that is read; a longer one counts as none."""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """The rights and the end of one session."""

    caller: str
    expires_at: float


class BrowserSessions:
    """All sessions of one server."""

    def __init__(self, port: int, clock: Callable[[], float] = monotonic) -> None:
        # Browsers send a cookie to every port of a host, so that two servers on one machine need two names.
        self.cookie_name = f"cleats_session_{port}"
        self._clock = clock
        self._sessions: dict[bytes, BrowserSession] = {}
        self._secret = token_bytes(32)

    def open_session(self, caller: str) -> str:
        """Open a session for a token name, and return the value of its cookie."""
        session_id = token_urlsafe(32)
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[_hash_id(session_id)] = BrowserSession(caller, self._clock() + SESSION_SECONDS)
        return session_id

    def close_session(self, cookie_header: str) -> None:
        """End the session of a Cookie header."""
        self._sessions.pop(_hash_id(self.read_session_id(cookie_header)), None)

    def find_caller(self, cookie_header: str) -> str | None:
        """Return the token name of the session in a Cookie header, or None if there is no live one."""
        key = _hash_id(self.read_session_id(cookie_header))
        session = self._sessions.get(key)
        if session is None:
            return None
        if session.expires_at <= self._clock():
            del self._sessions[key]
            return None
        return session.caller

    def read_session_id(self, cookie_header: str) -> str:
        """Return the id in a Cookie header; empty if there is none."""
        return read_cookie(cookie_header, self.cookie_name)

    def make_form_token(self, cookie_header: str) -> str:
        """Return what a form must send back: only pages of this server know it, and only those of this session."""
        return hmac.new(self._secret, self.read_session_id(cookie_header).encode(), sha256).hexdigest()

    def is_form_token(self, cookie_header: str, form_token: str) -> bool:
        """Return whether a form sent the token of its session."""
        return hmac.compare_digest(self.make_form_token(cookie_header).encode(), form_token.encode())


def read_cookie(cookie_header: str, name: str) -> str:
    """Return a value of a Cookie header; empty if it is not there."""
    if len(cookie_header) > MAX_COOKIE_CHARS:
        return ""
    try:
        morsel = SimpleCookie(cookie_header).get(name)
    except CookieError:
        return ""
    return "" if morsel is None else morsel.value


def _hash_id(session_id: str) -> bytes:
    return sha256(session_id.encode()).digest()
