"""The address of a product page, read by the patterns of the profiles.

Case, a query, a fragment, a slash at the end, the port that https has anyway and percent encoding
make no difference. Everything that would make it another page than it looks like (a user in front
of the host, an encoded slash, `..`) is refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, quote, unquote_to_bytes, urlsplit

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.profiles.parts import Section
from cleats.toolsets.launch.profiles.templates import match

LONGEST: Final = 2048
"""Characters. Longer ones are no addresses of pages."""

HTTPS: Final = 443

_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_KEPT_BACK = re.compile(r"(?<=/)[^/?#]*@|[?#].*", re.DOTALL)
"""Whoever is named before the host, and everything after the path."""


@dataclass(frozen=True, slots=True)
class Address:
    """A product page."""

    profile: Profile
    section: Section
    family: str
    platform: str
    locale: str
    page: str = ""

    @property
    def site(self) -> str:
        """The host."""
        return self.section.host


def read(url: str, profiles: Iterable[Profile]) -> Address:
    """What product an address stands for; the first profile that has the host decides.

    Raises:
        ToolError: INVALID_URL when it cannot be read or fits no pattern, UNSUPPORTED_SITE when no
            profile has its host.
    """
    parts = split(url)
    known = list(profiles)
    host = (parts.hostname or "").lower().removesuffix(".")
    profile = next((each for each in known if host in each.hosts), None)
    if profile is None:
        hosts = sorted(host for each in known for host in each.hosts)
        raise ToolError(
            ErrorCode.UNSUPPORTED_SITE,
            f"{host} is the host of no site that is known here",
            hint=f"Use one of {', '.join(hosts)}." if hosts else "No profile has a host.",
            details={"host": host, "hosts": hosts},
        )
    section = profile.hosts[host]
    if parts.scheme != "https" or parts.username is not None or port(parts) not in (None, HTTPS):
        raise _invalid(
            "the address has to begin with https:// and the host", profile, section, host
        )
    path = segments(parts.path)
    if path is None:
        raise _invalid("the path of the address cannot be read", profile, section, host)
    for pattern in section.urls:
        found = match(pattern, path, lambda name, value: _fitting(profile, name, value))
        if found is not None:
            locale = found.get("locale", profile.site.default_locale)
            page = found.get("page", "")
            return Address(profile, section, found["family"], found["platform"], locale, page)
    raise _invalid(_misfit(profile, path), profile, section, host)


def write(address: Address, *, whole: bool = True) -> str:
    """The address of a product page; `whole` names the locale even where it is the default."""
    values = {
        "family": address.family,
        "platform": address.platform,
        "locale": address.locale,
        "page": address.page,
    }
    made: list[str] = []
    for part in address.section.urls[0].split("/"):
        name = part.strip("{}?*")
        value = values.get(name, part)
        if part.endswith("?}") and not whole and value == address.profile.site.default_locale:
            continue
        made += [quote(each, safe="") for each in value.split("/") if each]
    return f"https://{address.site}/{'/'.join(made)}/"


def split(url: str) -> SplitResult:
    """The parts of an address of the web.

    Raises:
        ToolError: INVALID_URL.
    """
    text = url.strip(" ")
    plain = text.isprintable() and " " not in text and "\\" not in text
    try:
        parts = urlsplit(text)
        port(parts)
    except ValueError:
        plain = False
    if not plain or len(text) > LONGEST or parts.scheme not in ("http", "https"):
        raise ToolError(
            ErrorCode.INVALID_URL, f"{told(url)} is no address", hint="Give an https:// address."
        )
    if not parts.hostname:
        raise ToolError(
            ErrorCode.INVALID_URL, f"{told(url)} has no host", hint="Give an https:// address."
        )
    return parts


def told(url: str) -> str:
    """An address as a message repeats it: without what may be a password or a token."""
    return repr(_KEPT_BACK.sub("", url)[:100])


def port(parts: SplitResult) -> int | None:
    """The port of an address.

    Raises:
        ValueError: it is none.
    """
    return parts.port


def segments(path: str) -> list[str] | None:
    """The decoded segments of a path; None when it could mean more than one thing."""
    if _ESCAPE.search(path):
        return None
    made: list[str] = []
    for raw in path.strip("/").split("/") if path.strip("/") else ():
        try:
            value = unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            return None
        if value in ("", ".", "..") or not value.isprintable() or set(value) & set("/\\?#%"):
            return None
        made.append(value)
    return made if path.count("//") == 0 else None


def _fitting(profile: Profile, name: str, value: str) -> str | None:
    match name:
        case "family":
            family = profile.family(value)
            return family.name if family else None
        case "platform":
            platform = profile.platform(value)
            return platform.name if platform else None
        case "locale":
            return profile.locale(value)
        case _:
            return value


def _misfit(profile: Profile, path: Sequence[str]) -> str:
    """What of a path is not known, in words."""
    strange = [
        value
        for value in path[:3]
        if all(_fitting(profile, name, value) is None for name in ("family", "platform", "locale"))
    ]
    if strange:
        return f"{strange[0]!r} is neither a product nor a platform nor a language here"
    return "the address fits none of the patterns of its site"


def _invalid(message: str, profile: Profile, section: Section, host: str) -> ToolError:
    known: Mapping[str, Any] = {
        "site": host,
        "patterns": [f"https://{section.host}/{each}/" for each in section.urls],
        "families": [each.name for each in profile.families.known],
        "platforms": [each.name for each in profile.platforms],
        "locales": list(profile.site.locales),
    }
    return ToolError(
        ErrorCode.INVALID_URL,
        message,
        hint="The details have the patterns, and every name that fits into them.",
        details=known,
    )
