"""A profile: everything that differs between the sites of different teams.

It is a folder with a `profile.toml` and page templates, next to this module or in a folder that the
setting `launch_profiles` names; those replace built-in profiles of the same name. A profile is
checked completely, against `profile.schema.json` and for contradictions, before anything uses it.
"""

import json
import re
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
from cleats.toolsets.launch.profiles import parts
from cleats.toolsets.launch.profiles.parts import AliasedName, LayoutTemplates, SiteSection, fill_template

PROFILE_FILE_NAME: Final = "profile.toml"
BUILTIN_PROFILES_FOLDER: Final = Path(__file__).parent
_PLAIN_NAME_PATTERN: Final = re.compile(r"[^\W_][\w.-]*")
PROFILE_SCHEMA_PATH: Final = BUILTIN_PROFILES_FOLDER.parent / "schemas" / "profile.schema.json"


class Profile(Struct, frozen=True, kw_only=True, dict=True):
    """The sites of one team."""

    name: str
    title: str
    version: str
    site: parts.ProfileSite
    sections: tuple[SiteSection, ...]
    """The sections in the order in which they are processed."""
    families: parts.ProductFamilies
    platforms: tuple[AliasedName, ...]
    repositories: parts.ProductRepositories
    gates: parts.ValidationGates
    publishing: parts.PublishingTemplates
    brand: parts.Brand
    extends: str = ""
    """The profile whose values apply where this one has none."""
    folder: Path = Path()
    base_folders: tuple[Path, ...] = ()
    """The folders of the extended profiles, the nearest first."""

    @property
    def templates_folder(self) -> Path:
        folders = [folder / "templates" for folder in (self.folder, *self.base_folders)]
        return next(filter(Path.is_dir, folders), folders[0])

    @property
    def registry_file(self) -> Path:
        return self.folder / "registry.toml"

    def list_registered_products(self) -> tuple[parts.RegisteredProduct, ...]:
        """Return the products whose repositories the profile itself names."""
        file = self.registry_file
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        listed = msgspec.convert(tomllib.loads(text), parts.ProductRegistry)
        return (*listed.product, *self.repositories.registry)

    @property
    def sections_by_host(self) -> dict[str, SiteSection]:
        return {section.host: section for section in self.sections if section.host}

    def get_section(self, name: str) -> SiteSection:
        """Return the section of this name.

        Raises:
            KeyError: There is no such section.
        """
        return {section.name: section for section in self.sections}[name]

    def find_family(self, name: str) -> AliasedName | None:
        """Return the family with this name or alias, ignoring case, or None."""
        family = _find_by_name(self.families.known, name)
        if family is None and self.families.open and _PLAIN_NAME_PATTERN.fullmatch(name):
            return AliasedName(name=name.lower(), title=name)
        return family

    def find_platform(self, name: str) -> AliasedName | None:
        """Return the platform with this name or alias, ignoring case, or None."""
        return _find_by_name(self.platforms, name)

    def find_locale(self, name: str) -> str | None:
        """Return the locale that is spelled like this, ignoring case, or None."""
        return {locale.lower(): locale for locale in self.site.locales}.get(name.lower())

    def resolve_layout(self, mode: str, platform: str) -> str:
        """Return the layout that a `layout_mode` selects."""
        return mode if mode != "auto" else self.site.layout if platform else "v1"

    def format_product_name(self, family: str, platform: str) -> str:
        """Return the name of the product in prose."""
        found = {"family": self.find_family(family), "platform": self.find_platform(platform)}
        names = {"family": family, "platform": platform}
        values = {kind: item.title if item else names[kind] for kind, item in found.items()}
        return fill_template(self.brand.product_name, values)

    def with_site_layout(self, site_layout: Mapping[str, Any]) -> "Profile":
        """Return the profile with the section roots and content root of a configuration."""
        roots = site_layout["subdomain_roots"]
        modes = site_layout["localization"]["mode_by_section"]
        sections = tuple(
            msgspec.structs.replace(
                section,
                root=roots.get(section.name, section.root),
                localization=modes.get(section.name, section.localization),
            )
            for section in self.sections
        )
        site = msgspec.structs.replace(self.site, content_root=site_layout["content_root"])
        return msgspec.structs.replace(self, site=site, sections=sections)

    def build_page_path(self, section: str, slug: str, *, layout: str, family: str, platform: str, locale: str) -> str:
        """Return the path of a page in the repository of the site."""
        site_section = self.get_section(section)
        values = self._build_values(site_section, family, platform, locale) | {"slug": slug}
        relative_path = fill_template(site_section.paths.for_layout(layout), values)
        return f"{self.site.content_root}/{relative_path}" if self.site.content_root else relative_path

    def build_page_url(self, section: str, slug: str, *, layout: str, family: str, platform: str, locale: str) -> str:
        """Return the URL path of a page on its host; an index page has the path of its folder."""
        site_section = self.get_section(section)
        values = self._build_values(site_section, family, platform, locale)
        values["locale"] = "" if locale == self.site.default_locale else locale
        values["slug"] = "/".join(part for part in slug.split("/") if part not in ("_index", "index"))
        return fill_template(site_section.links.for_layout(layout), values)

    def list_allowed_paths(
        self, sections: Sequence[str], *, layout: str, family: str, platform: str, locales: Sequence[str]
    ) -> list[str]:
        """Return the folders that a run may write in, sorted, without duplicates."""
        paths: set[str] = set()
        for site_section in map(self.get_section, sections):
            for locale in locales:
                values = self._build_values(site_section, family, platform, locale)
                relative_path = fill_template(site_section.allowed.for_layout(layout), values)
                paths.add(f"{self.site.content_root}/{relative_path}".lstrip("/"))
        return sorted(paths)

    def list_hugo_configs(self, section: str, family: str) -> list[str]:
        """Return the files that may configure a section, the most likely one first."""
        site_section = self.get_section(section)
        values = {"host": site_section.host, "family": family, "root": site_section.root}
        return [fill_template(template, values) for template in site_section.hugo_config]

    def _build_values(self, section: SiteSection, family: str, platform: str, locale: str) -> dict[str, str]:
        suffix = "" if locale == self.site.default_locale else f".{locale}"
        section_values = {"root": section.root, "host": section.host, "section": section.name}
        return {**section_values, "family": family, "platform": platform, "locale": locale, "suffix": suffix}


def _find_by_name(items: Sequence[AliasedName], name: str) -> AliasedName | None:
    return next((item for item in items if name.casefold() in item.folded_names), None)


def load_named_profile(name: str, folders: Sequence[Path | str] = ()) -> Profile:
    """Return the profile of this name.

    Raises:
        ToolError: INVALID_INPUT when there is none, SCHEMA_VALIDATION_FAILED when it is invalid.
    """
    folders_by_name = find_profile_folders(folders)
    if name not in folders_by_name:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            f"unknown profile {name!r}",
            hint="The setting launch_profiles adds folders with profiles.",
            details={"known": sorted(folders_by_name)},
        )
    return _read_profile(folders_by_name[name])


def load_all_profiles(folders: Sequence[Path | str] = ()) -> Iterator[Profile]:
    """Yield all profiles, those of the operator first.

    Raises:
        ToolError: SCHEMA_VALIDATION_FAILED when one of them is invalid.
    """
    yield from map(_read_profile, find_profile_folders(folders).values())


def find_profile_folders(folders: Sequence[Path | str] = ()) -> dict[str, Path]:
    """Return the folders of all profiles by name; each folder may be or contain profiles."""
    folders_by_name: dict[str, Path] = {}
    for folder in map(Path, (*folders, BUILTIN_PROFILES_FOLDER)):
        subfolders = sorted(profile_file.parent for profile_file in folder.glob(f"*/{PROFILE_FILE_NAME}"))
        for profile_folder in [folder] if (folder / PROFILE_FILE_NAME).is_file() else subfolders:
            folders_by_name.setdefault(profile_folder.name, profile_folder)
    return folders_by_name


def _read_profile(folder: Path) -> Profile:
    profile = _parse_profile(folder, _read_stamps(folder))
    return _parse_profile(folder, _read_stamps(folder, *profile.base_folders)) if profile.base_folders else profile


def _read_stamps(*folders: Path) -> tuple[int, ...]:
    """Return the times of the last changes; as part of the key, they let a running server see an edited profile."""
    return tuple((folder / PROFILE_FILE_NAME).stat().st_mtime_ns for folder in folders)


def _load_document(folder: Path, extending: tuple[Path, ...] = ()) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """Return the values of a profile and of those that it extends, and the folders of these."""
    try:
        document = tomllib.loads((folder / PROFILE_FILE_NAME).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _make_profile_error(folder, [_make_fault("", f"is not TOML: {error}")]) from None
    name = document.get("extends")
    if not isinstance(name, str):
        return document, ()
    candidates = [parent / name for parent in (folder.parent, BUILTIN_PROFILES_FOLDER)]
    base = next((path for path in candidates if (path / PROFILE_FILE_NAME).is_file() and path != folder), None)
    if base is None or not _PLAIN_NAME_PATTERN.fullmatch(name) or base in extending:
        raise _make_profile_error(folder, [_make_fault("/extends", f"cannot extend {name!r}")])
    inherited, folders = _load_document(base, (*extending, folder))
    merged = {
        key: {**inherited[key], **value} if isinstance(value, dict) and isinstance(inherited.get(key), dict) else value
        for key, value in document.items()
    }
    return {**inherited, **merged}, (base, *folders)


@cache
def _parse_profile(folder: Path, _stamps: tuple[int, ...]) -> Profile:
    document, base_folders = _load_document(folder)
    if violations := [violation.as_json() for violation in _load_validator().find_violations(document)]:
        raise _make_profile_error(folder, violations)
    with _CONVERSION_LOCK:
        profile = msgspec.convert(
            {**document, "folder": str(folder), "base_folders": list(map(str, base_folders))},
            Profile,
            dec_hook=lambda _kind, value: Path(value),
        )
    if faults := list(_find_contradictions(profile, folder)):
        raise _make_profile_error(folder, faults)
    return profile


_CONVERSION_LOCK: Final = threading.Lock()
"""The first conversion builds msgspec's type information, and two threads that build it at the same
time crash the process. Runs are started in threads."""


@cache
def _load_validator() -> Validator:
    return Validator(json.loads(PROFILE_SCHEMA_PATH.read_text(encoding="utf-8")))


_PATH_PLACEHOLDERS: Final = {"root", "host", "section", "family", "platform", "locale", "suffix", "slug"}


def _find_contradictions(profile: Profile, folder: Path) -> Iterator[dict[str, str]]:
    """Yield the faults that a schema cannot express."""
    if profile.name != folder.name:
        yield _make_fault("/name", f"is {profile.name!r}, and its folder is {folder.name!r}")
    if profile.site.default_locale not in profile.site.locales:
        yield _make_fault("/site/default_locale", "is not among the locales")
    for number, section in enumerate(profile.sections):
        for group in ("paths", "links", "allowed"):
            pointer = f"/sections/{number}/{group}"
            yield from _find_template_faults(pointer, getattr(section, group), profile.site.layout)
    for name in ("branch", "commit_message", "commit_body", "pr_title"):
        known_words = parts.BRANCH_TEMPLATE_WORDS if name == "branch" else parts.CHANGE_TEMPLATE_WORDS
        for unknown in sorted(parts.list_placeholders(getattr(profile.publishing, name)) - known_words):
            yield _make_fault(f"/publishing/{name}", f"{{{unknown}}} is unknown")
    for level in ("local", "ci", "prod"):
        for gate in profile.gates.for_profile(level):
            if gate.startswith(tuple(f"{kind}_" for kind in parts.SITE_KIND_NAMES if kind != profile.site.kind)):
                yield _make_fault(f"/gates/{level}", f"{gate} is not a gate of {profile.site.kind} sites")
    yield from _find_duplicate_names("/families/known", profile.families.known)
    yield from _find_duplicate_names("/platforms", profile.platforms)


def _find_template_faults(pointer: str, templates: LayoutTemplates, layout: str) -> Iterator[dict[str, str]]:
    for version in ("v1", "v2"):
        for name in sorted(parts.list_placeholders(templates.for_layout(version)) - _PATH_PLACEHOLDERS):
            yield _make_fault(f"{pointer}/{version}", f"{{{name}}} is unknown")
    if not templates.for_layout(layout):
        yield _make_fault(f"{pointer}/{layout}", "is missing, and it is the layout of the site")


def _find_duplicate_names(pointer: str, items: Sequence[AliasedName]) -> Iterator[dict[str, str]]:
    owners_by_name: dict[str, str] = {}
    for number, item in enumerate(items):
        for name in sorted(item.folded_names):
            if name in owners_by_name:
                yield _make_fault(f"{pointer}/{number}", f"{name!r} is already {owners_by_name[name]!r}")
            owners_by_name[name] = item.name


def _make_fault(path: str, message: str) -> dict[str, str]:
    return {"instancePath": path, "message": message}


def _make_profile_error(folder: Path, violations: Sequence[Mapping[str, str]]) -> ToolError:
    first = violations[0]
    return ToolError(
        ErrorCode.SCHEMA_VALIDATION_FAILED,
        f"profile {folder.name}: {first['instancePath'] or PROFILE_FILE_NAME}: {first['message']}",
        details={"profile": folder.name, "violations": list(violations)},
    )
