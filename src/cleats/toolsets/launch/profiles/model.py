"""A profile: everything about a family of sites that is not the same for everybody.

It is a folder with a `profile.toml` and the templates of its pages. The built-in ones lie beside
this module; the setting `launch_profiles` names folders with more, and one of those replaces a
built-in of the same name. A profile is read and checked whole, against `profile.schema.json` and
against itself, before anything uses it.
"""

import json
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.violations import Validator
from cleats.toolsets.launch.profiles.parts import (
    BRANCH_WORDS,
    WORDS,
    Brand,
    ByLayout,
    Families,
    Gates,
    Named,
    Publishing,
    Repositories,
    Section,
    Site,
)
from cleats.toolsets.launch.profiles.templates import fill, names

FILE: Final = "profile.toml"
OURS: Final = Path(__file__).parent
SCHEMA: Final = OURS.parent / "schemas" / "profile.schema.json"


class Profile(Struct, frozen=True, kw_only=True, dict=True):
    """One team's sites."""

    name: str
    title: str
    version: str
    site: Site
    sections: tuple[Section, ...]
    """In the order in which they are worked on."""
    families: Families
    platforms: tuple[Named, ...]
    repositories: Repositories
    gates: Gates
    publishing: Publishing
    brand: Brand
    folder: Path = Path()

    @property
    def templates(self) -> Path:
        """The folder of the pages' templates."""
        return self.folder / "templates"

    @property
    def hosts(self) -> dict[str, Section]:
        """The sections by the host that serves them."""
        return {each.host: each for each in self.sections if each.host}

    def section(self, name: str) -> Section:
        """The section of this name.

        Raises:
            KeyError: there is none.
        """
        return {each.name: each for each in self.sections}[name]

    def family(self, name: str) -> Named | None:
        """The family that goes by this name, in any case."""
        found = _called(self.families.known, name)
        if found is None and self.families.open and _is_plain(name):
            return Named(name=name.lower(), title=name)
        return found

    def platform(self, name: str) -> Named | None:
        """The platform that goes by this name, in any case."""
        return _called(self.platforms, name)

    def locale(self, name: str) -> str | None:
        """The locale that is spelled like this, in any case."""
        return {each.lower(): each for each in self.site.locales}.get(name.lower())

    def layout(self, mode: str, platform: str) -> str:
        """What `layout_mode` comes to."""
        if mode != "auto":
            return mode
        return self.site.layout if platform else "v1"

    def product_name(self, family: str, platform: str) -> str:
        """What the product is called in prose."""
        return fill(self.brand.product_name, self._titles(family, platform))

    def laid_out(self, site_layout: Mapping[str, Any]) -> "Profile":
        """The profile of a site whose sections lie elsewhere, as a configuration has it."""
        roots = site_layout["subdomain_roots"]
        modes = site_layout["localization"]["mode_by_section"]
        sections = tuple(
            msgspec.structs.replace(each, root=roots[each.name], localization=modes[each.name])
            for each in self.sections
        )
        site = msgspec.structs.replace(self.site, content_root=site_layout["content_root"])
        return msgspec.structs.replace(self, site=site, sections=sections)

    def page_path(
        self, section: str, slug: str, *, layout: str, family: str, platform: str, locale: str
    ) -> str:
        """Where a page of this profile lies in the site's repository."""
        home = self.section(section)
        values = self._values(home, family, platform, locale) | {"slug": slug}
        below = fill(home.paths.of(layout), values)
        return f"{self.site.content_root}/{below}" if self.site.content_root else below

    def page_url(
        self, section: str, slug: str, *, layout: str, family: str, platform: str, locale: str
    ) -> str:
        """What path a page of this profile has on its host; that of an index is its folder's."""
        home = self.section(section)
        values = self._values(home, family, platform, locale)
        values["locale"] = "" if locale == self.site.default_locale else locale
        values["slug"] = _address(slug)
        return fill(home.links.of(layout), values)

    def allowed_paths(
        self,
        sections: Sequence[str],
        *,
        layout: str,
        family: str,
        platform: str,
        locales: Sequence[str],
    ) -> list[str]:
        """The folders that a run may write in, each once, sorted."""
        made: set[str] = set()
        for home in map(self.section, sections):
            for locale in locales:
                values = self._values(home, family, platform, locale)
                below = fill(home.allowed.of(layout), values)
                made.add(f"{self.site.content_root}/{below}".lstrip("/"))
        return sorted(made)

    def hugo_configs(self, section: str, family: str) -> list[str]:
        """The files that may configure a section, the most likely one first."""
        home = self.section(section)
        values = {"host": home.host, "family": family, "root": home.root}
        return [fill(each, values) for each in home.hugo_config]

    def _values(self, section: Section, family: str, platform: str, locale: str) -> dict[str, str]:
        default = locale == self.site.default_locale
        return {
            "root": section.root,
            "host": section.host,
            "section": section.name,
            "family": family,
            "platform": platform,
            "locale": locale,
            "suffix": "" if default else f".{locale}",
        }

    def _titles(self, family: str, platform: str) -> dict[str, str]:
        product, system = self.family(family), self.platform(platform)
        return {
            "family": product.title if product else family,
            "platform": system.title if system else platform,
        }


def _address(slug: str) -> str:
    """The part of an address that a slug becomes."""
    parts = [part for part in slug.split("/") if part not in ("_index", "index")]
    return "/".join(parts)


def _called(known: Sequence[Named], name: str) -> Named | None:
    wanted = name.casefold()
    for each in known:
        if wanted == each.name.casefold() or wanted in map(str.casefold, each.aliases):
            return each
    return None


def _is_plain(name: str) -> bool:
    return bool(name) and all(c.isalnum() or c in "-_." for c in name) and name[0].isalnum()


def load(name: str, folders: Sequence[Path | str] = ()) -> Profile:
    """The profile of this name.

    Raises:
        ToolError: INVALID_INPUT when there is none, SCHEMA_VALIDATION_FAILED when it is not one.
    """
    known = places(folders)
    if name not in known:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            f"there is no profile {name!r}",
            hint="The setting launch_profiles names folders with more.",
            details={"known": sorted(known)},
        )
    return _read(known[name])


def of(config: Mapping[str, Any], folders: Sequence[Path | str] = ()) -> Profile:
    """The profile of a run, with what its normalised configuration changes in it.

    Raises:
        ToolError: as `load`.
    """
    return load(config["profile"], folders).laid_out(config["site_layout"])


def every(folders: Sequence[Path | str] = ()) -> Iterator[Profile]:
    """Every profile that can be used, those of the operator first.

    Raises:
        ToolError: SCHEMA_VALIDATION_FAILED, one of them is none.
    """
    for place in places(folders).values():
        yield _read(place)


def places(folders: Sequence[Path | str] = ()) -> dict[str, Path]:
    """The folder of each profile by its name; a folder may be a profile or hold some."""
    found: dict[str, Path] = {}
    for folder in map(Path, (*folders, OURS)):
        inside = sorted(each.parent for each in folder.glob(f"*/{FILE}"))
        for place in [folder] if (folder / FILE).is_file() else inside:
            found.setdefault(place.name, place)
    return found


def _read(place: Path) -> Profile:
    # Stamped, so that a server sees a profile that was edited while it runs.
    return _parsed(place, (place / FILE).stat().st_mtime_ns)


@cache
def _parsed(place: Path, _stamp: int) -> Profile:
    try:
        document = tomllib.loads((place / FILE).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _unusable(place, [_found("", f"is not TOML: {error}")]) from None
    if violations := [each.as_json() for each in _validator().violations(document)]:
        raise _unusable(place, violations)
    with _CONVERTING:
        made = msgspec.convert({**document, "folder": str(place)}, Profile, dec_hook=_path)
    if wrong := list(_contradictions(made, place)):
        raise _unusable(place, wrong)
    return made


_CONVERTING: Final = threading.Lock()
"""The first conversion makes what msgspec knows of a type, and two threads that make it at once
bring the process down. Runs are started in threads."""


def _path(_kind: type, value: Any) -> Path:
    return Path(value)


@cache
def _validator() -> Validator:
    return Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


_PATHS: Final = {"root", "host", "section", "family", "platform", "locale", "suffix", "slug"}


def _contradictions(profile: Profile, place: Path) -> Iterator[dict[str, str]]:
    """What a schema cannot say."""
    if profile.name != place.name:
        yield _found("/name", f"is {profile.name!r}, and its folder is {place.name!r}")
    if profile.site.default_locale not in profile.site.locales:
        yield _found("/site/default_locale", "is not among the locales")
    for number, section in enumerate(profile.sections):
        for group in ("paths", "links", "allowed"):
            where = f"/sections/{number}/{group}"
            yield from _template_faults(where, getattr(section, group), profile.site.layout)
    for name in ("branch", "commit_message", "commit_body", "pr_title"):
        known = BRANCH_WORDS if name == "branch" else WORDS
        for unknown in sorted(names(getattr(profile.publishing, name)) - known):
            yield _found(f"/publishing/{name}", f"{{{unknown}}} is unknown")
    yield from _doubles("/families/known", profile.families.known)
    yield from _doubles("/platforms", profile.platforms)


def _template_faults(where: str, templates: ByLayout, layout: str) -> Iterator[dict[str, str]]:
    for each in ("v1", "v2"):
        for name in sorted(names(templates.of(each)) - _PATHS):
            yield _found(f"{where}/{each}", f"{{{name}}} is unknown")
    if not templates.of(layout):
        yield _found(f"{where}/{layout}", "is missing, and it is the layout of the site")


def _doubles(where: str, known: Sequence[Named]) -> Iterator[dict[str, str]]:
    seen: dict[str, str] = {}
    for number, each in enumerate(known):
        for name in sorted({each.name.casefold(), *map(str.casefold, each.aliases)}):
            if name in seen:
                yield _found(f"{where}/{number}", f"{name!r} is already {seen[name]!r}")
            seen[name] = each.name


def _found(path: str, message: str) -> dict[str, str]:
    return {"instancePath": path, "message": message}


def _unusable(place: Path, violations: Sequence[Mapping[str, str]]) -> ToolError:
    first = violations[0]
    return ToolError(
        ErrorCode.SCHEMA_VALIDATION_FAILED,
        f"profile {place.name}: {first['instancePath'] or FILE}: {first['message']}",
        details={"profile": place.name, "violations": list(violations)},
    )
