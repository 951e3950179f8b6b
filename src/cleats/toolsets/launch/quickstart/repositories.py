"""The address of a repository, and what its name says."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.quickstart.addresses import HTTPS, port, segments, split, told

_PART: Final = re.compile(r"[A-Za-z0-9_.+-]{1,100}")
_NAMES: Final = {
    "family": r"(?P<family>[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*?)",
    "platform": r"(?P<platform>[A-Za-z0-9.+#]+)",
}


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository by its owner and name."""

    host: str
    owner: str
    name: str

    @property
    def url(self) -> str:
        """Its one address."""
        return f"https://{self.host}/{self.owner}/{self.name}"


def read(url: str, profile: Profile) -> Repository:
    """The repository that an address is of: `https://github.com/owner/name`, and nothing more.

    Raises:
        ToolError: INVALID_URL.
    """
    parts = split(url)
    host = (parts.hostname or "").lower()
    path = segments(parts.path) or []
    whole = (
        parts.scheme == "https"
        and parts.username is None
        and port(parts) in (None, HTTPS)
        and not parts.query
        and not parts.fragment
        and host in profile.repositories.hosts
    )
    if whole and len(path) == 2:
        owner, name = path[0], path[1].removesuffix(".git")
        if _PART.fullmatch(owner) and _PART.fullmatch(name) and name not in (".", ".."):
            return Repository(host, owner, name)
    hosts = " or ".join(profile.repositories.hosts)
    raise ToolError(
        ErrorCode.INVALID_URL,
        f"{told(url)} is not the address of a repository on {hosts}",
        hint=f"Give https://{profile.repositories.hosts[0]}/owner/name, and nothing after it.",
        details={"hosts": list(profile.repositories.hosts)},
    )


@dataclass(frozen=True, slots=True)
class Said:
    """What a name stands for; empty where it says nothing."""

    family: str = ""
    platform: str = ""


def by_name(repository: Repository, profile: Profile) -> Said:
    """What the first pattern that the name fits makes of it."""
    for pattern in profile.repositories.names:
        if (said := _said(pattern, repository.name, profile)) is not None:
            return said
    return Said()


def by_owner(repository: Repository, profile: Profile) -> str:
    """The family that the owner is called after."""
    for pattern in profile.repositories.owners:
        if (said := _said(pattern, repository.owner, profile)) is not None:
            return said.family
    return ""


def by_package(name: str, profile: Profile) -> str:
    """The family that a package is called after."""
    for pattern in profile.repositories.packages:
        if (said := _said(pattern, _bare(name), profile)) is not None:
            return said.family
    return ""


def mentions(text: str, profile: Profile) -> Iterator[str]:
    """Every family that a text names the way packages are named, as often as it does.

    Without a brand before it a family is a word like any other, so an open list has none.
    """
    for family in profile.families.known:
        names = "|".join(re.escape(each) for each in (family.name, *family.aliases))
        for pattern in profile.repositories.packages[-1:]:
            brand = pattern.partition("{family}")[0].rstrip(".-_ ")
            if brand:
                form = rf"(?<![\w.]){re.escape(brand)}[.\s_-]?(?:{names})(?!\w)"
                yield from (family.name for _ in re.finditer(form, text, re.IGNORECASE))


def _said(pattern: str, name: str, profile: Profile) -> Said | None:
    found = _form(pattern).fullmatch(name)
    if found is None:
        return None
    groups = found.groupdict()
    family = profile.family(groups.get("family") or "")
    platform = profile.platform(groups.get("platform") or "")
    if ("family" in groups and family is None) or ("platform" in groups and platform is None):
        return None
    return Said(family.name if family else "", platform.name if platform else "")


@cache
def _form(pattern: str) -> re.Pattern[str]:
    made = re.escape(pattern)
    for name, group in _NAMES.items():
        made = made.replace(re.escape(f"{{{name}}}"), group)
    return re.compile(made, re.IGNORECASE)


def _bare(package: str) -> str:
    """A package's own name: without a scope, a group or the path of a module."""
    return re.split(r"[/:]", package.removeprefix("@"))[-1]
