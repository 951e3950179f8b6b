"""A browser without a screen: reads pages of the console, keeps cookies and sends forms with their token."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from tests.support.http_client import HttpReply, WebServer

HTML_HEADERS = {"accept": "text/html,application/xhtml+xml"}
FORM_HEADERS = {"content-type": "application/x-www-form-urlencoded"}


@dataclass
class ConsoleBrowser:
    """One person who uses the console of a server."""

    web: WebServer
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> HttpReply:
        return self._send("GET", path, None, {**HTML_HEADERS, **headers})

    def get_fragment(self, path: str) -> HttpReply:
        return self.get(path, **{"x-fragment": "1"})

    def read_form_token(self, path: str = "/") -> str:
        match = re.search(r'data-form-token="([0-9a-f]+)"', self.get(path).body.decode())
        assert match, path
        return match[1]

    def submit(self, path: str, fields: Mapping[str, str], *, token: str | None = None, **headers: str) -> HttpReply:
        """Send a form, with the token of the page it is on unless another is given."""
        form_token = self.read_form_token() if token is None else token
        body = urlencode({"form_token": form_token, **fields}).encode()
        return self._send("POST", path, body, {**HTML_HEADERS, **FORM_HEADERS, **headers})

    def sign_in(self, secret: str, next_path: str = "/") -> HttpReply:
        token = self.read_form_token("/console/sign-in")
        return self.submit("/console/sign-in", {"token": secret, "next": next_path}, token=token)

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> HttpReply:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        reply = self.web.send_request(method, path, body, {**headers, **({"cookie": cookie} if cookie else {})})
        if header := reply.headers.get("set-cookie"):
            name, _, rest = header.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return reply
