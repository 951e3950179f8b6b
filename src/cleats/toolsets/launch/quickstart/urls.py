"""URLs of product pages, parsed with the patterns of the profiles.

Case, a query, a fragment, a trailing slash, the default port and percent encoding make no
difference. Anything that would make the URL point to another page than it appears to (a user before
the host, an encoded slash, `..`) is rejected.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.profiles.parts import SiteSection, match_path

MAX_URL_CHARACTERS: Final = 2048
"""Longest accepted URL, in characters."""

HTTPS_PORT: Final = 443

_BAD_ESCAPE_PATTERN = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PRIVATE_PARTS_PATTERN = re.compile(r"(?<=/)[^/?#]*(?=@)|(?<=[?#]).*", re.DOTALL)
"""The userinfo before the host, and everything in the query and the fragment."""


@dataclass(frozen=True, slots=True)
class ProductPage:
    """A page of a product on its site."""

    profile: Profile
    section: SiteSection
    family: str
    platform: str
    locale: str
    page: str = ""


def parse_page_url(url: str, profiles: Iterable[Profile]) -> ProductPage:
    """Return the product page that a URL names; the first profile that has the host decides.

    Raises:
        ToolError: INVALID_URL when the URL cannot be parsed or fits no pattern, UNSUPPORTED_SITE
            when no profile has its host.
    """
    parts = split_url(url)
    known_profiles = list(profiles)
    host = (parts.hostname or "").lower().removesuffix(".")
    profile = next((candidate for candidate in known_profiles if host in candidate.sections_by_host), None)
    if profile is None:
        hosts = sorted(host for candidate in known_profiles for host in candidate.sections_by_host)
        raise ToolError(
            ErrorCode.UNSUPPORTED_SITE,
            f"{host} is not the host of a known site",
            hint=f"Use one of {', '.join(hosts)}." if hosts else "No profile has a host.",
            details={"host": host, "hosts": hosts},
        )
    section = profile.sections_by_host[host]
    if parts.scheme != "https" or parts.username is not None or parts.port not in (None, HTTPS_PORT):
        raise _invalid_url_error("the address must begin with https:// and a host", profile, section, host)
    path = decode_path(parts.path)
    if path is None:
        raise _invalid_url_error("the path of the address cannot be read", profile, section, host)
    for pattern in section.urls:
        matched = match_path(pattern, path, lambda name, value: _resolve_name(profile, name, value))
        if matched is not None:
            locale = matched.get("locale", profile.site.default_locale)
            page = matched.get("page", "")
            return ProductPage(profile, section, matched["family"], matched["platform"], locale, page)
    raise _invalid_url_error(_describe_misfit(profile, path), profile, section, host)


def split_url(url: str) -> SplitResult:
    """Split a web URL into its parts.

    Raises:
        ToolError: INVALID_URL.
    """
    text = url.strip(" ")
    plain = text.isprintable() and " " not in text and "\\" not in text
    try:
        parts = urlsplit(text)
        _ = parts.port  # invalid ports are found when they are read
    except ValueError:
        plain = False
    is_address = plain and len(text) <= MAX_URL_CHARACTERS and parts.scheme in ("http", "https")
    if is_address and parts.hostname:
        return parts
    message = f"{quote_redacted_url(url)} {'has no host' if is_address else 'is not a web address'}"
    raise ToolError(ErrorCode.INVALID_URL, message, hint="Give an https:// address.")


def quote_redacted_url(url: str) -> str:
    """Quote a URL for a message, with dots for the parts that may hold a password or a token."""
    return repr(_PRIVATE_PARTS_PATTERN.sub(lambda part: "..." if part[0] else "", url)[:100])


def decode_path(path: str) -> list[str] | None:
    """Return the decoded segments of a path; None when the path is ambiguous."""
    if _BAD_ESCAPE_PATTERN.search(path):
        return None
    decoded: list[str] = []
    for raw in path.strip("/").split("/") if path.strip("/") else ():
        try:
            value = unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            return None
        if value in ("", ".", "..") or not value.isprintable() or set(value) & set("/\\?#%"):
            return None
        decoded.append(value)
    return decoded if path.count("//") == 0 else None


def _resolve_name(profile: Profile, name: str, value: str) -> str | None:
    match name:
        case "family" | "platform":
            found = profile.find_family(value) if name == "family" else profile.find_platform(value)
            return found.name if found else None
        case "locale":
            return profile.find_locale(value)
        case _:
            return value


def _describe_misfit(profile: Profile, path: Sequence[str]) -> str:
    unknown_values = [
        value
        for value in path[:3]
        if all(_resolve_name(profile, name, value) is None for name in ("family", "platform", "locale"))
    ]
    if unknown_values:
        return f"{unknown_values[0]!r} is not a known product, platform or language"
    return "the address matches none of the patterns of its site"


def _invalid_url_error(message: str, profile: Profile, section: SiteSection, host: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_URL,
        message,
        hint="The details list the patterns and the valid names.",
        details={
            "site": host,
            "patterns": [f"https://{section.host}/{item}/" for item in section.urls],
            "families": [item.name for item in profile.families.known],
            "platforms": [item.name for item in profile.platforms],
            "locales": list(profile.site.locales),
        },
    )


_URL_SEGMENT_PATTERN: Final = re.compile(r"[A-Za-z0-9_.+-]{1,100}")
_NAME_GROUPS: Final = {
    "family": r"(?P<family>[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*?)",
    "platform": r"(?P<platform>[A-Za-z0-9.+#]+)",
}


@dataclass(frozen=True, slots=True)
class HostedRepository:
    """A repository identified by host, owner and name."""

    host: str
    owner: str
    name: str

    @property
    def url(self) -> str:
        """The canonical URL."""
        return f"https://{self.host}/{self.owner}/{self.name}"


def parse_repository_url(url: str, profile: Profile) -> HostedRepository:
    """Return the repository of a URL that is exactly `https://github.com/owner/name`.

    Raises:
        ToolError: INVALID_URL.
    """
    parts = split_url(url)
    host = (parts.hostname or "").lower()
    path = decode_path(parts.path) or []
    owner, name = (path[0], path[1].removesuffix(".git")) if len(path) == 2 else ("", "")
    has_names = all(_URL_SEGMENT_PATTERN.fullmatch(part) and part not in (".", "..") for part in (owner, name))
    hosts = " or ".join(profile.repositories.hosts)
    problems = {
        "it does not begin with https://": parts.scheme != "https",
        f"its host is {host}": host not in profile.repositories.hosts,
        "it has a user before the host": parts.username is not None,
        "it has a port": parts.port not in (None, HTTPS_PORT),
        "it has a query (after ?)": bool(parts.query),
        "it has a fragment (after #)": bool(parts.fragment),
        "its path is not owner/name": not has_names,
    }
    if not any(problems.values()):
        return HostedRepository(host, owner, name)
    reasons = ", ".join(problem for problem, applies in problems.items() if applies)
    raise ToolError(
        ErrorCode.INVALID_URL,
        f"{quote_redacted_url(url)} is not the address of a repository on {hosts}: {reasons}",
        hint=f"Give https://{profile.repositories.hosts[0]}/owner/name, and nothing after it.",
        details={"hosts": list(profile.repositories.hosts)},
    )


@dataclass(frozen=True, slots=True)
class NameMatch:
    """The family and platform that a name stands for; empty where it names none."""

    family: str = ""
    platform: str = ""


def match_name(patterns: Iterable[str], name: str, profile: Profile) -> NameMatch:
    """Match a name against patterns of the profile; the first one that fits decides."""
    for match in filter(None, (_compile_name_pattern(pattern).fullmatch(name) for pattern in patterns)):
        groups = match.groupdict()
        family = profile.find_family(groups.get("family") or "")
        platform = profile.find_platform(groups.get("platform") or "")
        if (family or "family" not in groups) and (platform or "platform" not in groups):
            return NameMatch(family.name if family else "", platform.name if platform else "")
    return NameMatch()


def find_family_mentions(text: str, profile: Profile) -> Iterator[str]:
    """Yield every family that a text names the way packages are named, once per mention.

    Without a brand before it, a family is an ordinary word; so a profile with an open list of
    families yields none.
    """
    for family in profile.families.known:
        names = "|".join(re.escape(alias) for alias in (family.name, *family.aliases))
        for pattern in profile.repositories.packages[-1:]:
            brand = pattern.partition("{family}")[0].rstrip(".-_ ")
            if brand:
                mention_pattern = rf"(?<![\w.]){re.escape(brand)}[.\s_-]?(?:{names})(?!\w)"
                yield from (family.name for _ in re.finditer(mention_pattern, text, re.IGNORECASE))


@cache
def _compile_name_pattern(pattern: str) -> re.Pattern[str]:
    regex = re.escape(pattern)
    for name, group in _NAME_GROUPS.items():
        regex = regex.replace(re.escape(f"{{{name}}}"), group)
    return re.compile(regex, re.IGNORECASE)
