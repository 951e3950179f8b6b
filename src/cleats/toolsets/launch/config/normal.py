"""From the configuration that was given to the one that counts.

Everything a run needs is in it, defaults included, spelled in one way: two configurations that
mean the same become the same, and so have the same hash. What cannot be used is refused here,
before there is a run, with the place of every fault.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.launch import artifacts
from cleats.toolsets.launch.config import tokens
from cleats.toolsets.launch.config.defaults import filled
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.profiles.parts import BRANCH_WORDS, WORDS
from cleats.toolsets.launch.profiles.templates import names

SCHEMA: Final = "run_config"

LINE: Final = 200
"""Characters of a name."""

NODE: Final = frozenset({"javascript", "typescript"})
"""Platforms of one family: what is said of Node holds for both."""


def normalise(given: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return the configuration that counts.

    Raises:
        ToolError: SCHEMA_VALIDATION_FAILED, with a JSON Pointer for every fault; INVALID_INPUT
            when there is no such profile, or no repository of the site is known.
    """
    if found := artifacts.faults(SCHEMA, given):
        raise _unfit(found)
    config: dict[str, Any] = filled(artifacts.load(SCHEMA), given)
    profile = model.load(config.get("profile", settings.launch_profile), settings.launch_profiles)
    if found := [_fault(*each) for each in _misfits(config, profile, settings)]:
        raise _unfit(found)
    return _complete(config, profile, settings)


def config_hash(config: Mapping[str, Any]) -> str:
    """What identifies a configuration: the hash of its canonical JSON."""
    return hashlib.sha256(artifacts.compact(config).encode()).hexdigest()


def missing(fields: Mapping[str, list[str]], message: str, hint: str) -> ToolError:
    """Why no configuration came about: the fields that nobody could fill in, with candidates."""
    return ToolError(
        ErrorCode.INVALID_INPUT,
        message,
        hint=hint,
        details={
            "missing_fields": list(fields),
            "suggested_values": {name: values for name, values in fields.items() if values},
        },
    )


def _misfits(
    config: Mapping[str, Any], profile: Profile, settings: Settings
) -> Iterator[tuple[str, str]]:
    """What the schema cannot say: the faults against the profile and against the settings."""
    for name in ("family", "product_slug"):
        if name in config and profile.family(config[name]) is None and _is_family(config, name):
            known = ", ".join(each.name for each in profile.families.known)
            yield f"/{name}", f"{config[name]!r} is no family of {profile.name}: {known}"
    if profile.platform(config["target_platform"]) is None:
        known = ", ".join(each.name for each in profile.platforms)
        given = config["target_platform"]
        yield "/target_platform", f"{given!r} is no platform of {profile.name}: {known}"
    sections = [each.name for each in profile.sections]
    for number, name in enumerate(config["required_sections"]):
        if name not in sections:
            where = f"/required_sections/{number}"
            yield where, f"{profile.name} has no section {name!r}: {', '.join(sections)}"
    yield from _bad_locales(config, profile)
    yield from _bad_layout(config, profile)
    yield from _bad_templates(config)
    yield from tokens.unreadable(config)
    yield from _bad_lines(config)
    yield from _reserved(config)
    yield from tokens.refusals(config, settings)


def _is_family(config: Mapping[str, Any], name: str) -> bool:
    """A slug is only held to the list of families where it stands for one."""
    return name == "family" or "family" not in config


def _bad_locales(config: Mapping[str, Any], profile: Profile) -> Iterator[tuple[str, str]]:
    given = config.get("locales", [])
    known = f"{profile.name}: {', '.join(profile.site.locales)}"
    if "locale" in config:
        if given and [each.lower() for each in given] != [config["locale"].lower()]:
            yield "/locale", "differs from locales; give one of the two"
        if profile.locale(config["locale"]) is None:
            yield "/locale", f"{config['locale']!r} is no language of {known}"
    for number, name in enumerate(given):
        if profile.locale(name) is None:
            yield f"/locales/{number}", f"{name!r} is no language of {known}"


def _bad_layout(config: Mapping[str, Any], profile: Profile) -> Iterator[tuple[str, str]]:
    layout = profile.layout(config["layout_mode"], config["target_platform"])
    without = [each.name for each in profile.sections if not each.paths.of(layout)]
    if without:
        yield "/layout_mode", f"{profile.name} has no layout {layout} for {', '.join(without)}"


_TEMPLATES: Final = (
    ("publish", "branch", BRANCH_WORDS),
    ("commit_service", "commit_message_template", WORDS),
    ("commit_service", "commit_body_template", WORDS),
)


def _bad_templates(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for part, name, known in _TEMPLATES:
        for unknown in sorted(names(config.get(part, {}).get(name, "")) - known):
            yield f"/{part}/{name}", f"{{{unknown}}} is none of {', '.join(sorted(known))}"


_LINES: Final = (
    ("product_name",),
    ("llm", "model"),
    ("llm", "fallback", "model"),
    ("commit_service", "author_name"),
    ("commit_service", "author_email"),
    ("telemetry", "project"),
)
"""What goes into pages, commits and records as a line of its own or a part of one."""


def _bad_lines(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for place in _LINES:
        value: Any = config
        for part in place:
            value = value.get(part, {})
        if value and not (value.isprintable() and len(value) <= LINE):
            yield f"/{'/'.join(place)}", f"expected one line of at most {LINE} printable characters"


_RESERVED: Final = (
    ("/extra_evidence_urls", "statements rest on the repository alone"),
    ("/hugo/config_dir", "the profile says where the configurations of Hugo lie"),
    ("/hugo/config_snapshot_dir", "the configurations of Hugo are read in the site itself"),
)
"""What others have a use for and a run here has not: refused, where it would be left undone."""


def _reserved(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path, why in _RESERVED:
        value: Any = config
        for part in path.strip("/").split("/"):
            value = value.get(part, {})
        if value:
            yield path, f"reserved: {why}"


def _complete(config: dict[str, Any], profile: Profile, settings: Settings) -> dict[str, Any]:
    family = profile.family(config.get("family") or config["product_slug"])
    platform = profile.platform(config["target_platform"])
    assert family is not None  # noqa: S101 - checked with all other faults
    assert platform is not None  # noqa: S101
    layout = profile.layout(config["layout_mode"], platform.name)
    order = [each.name for each in profile.sections]
    sections = sorted(config["required_sections"], key=order.index)
    locales = [config["locale"]] if "locale" in config else config.get("locales", [])
    locales = [str(profile.locale(each)) for each in locales] or [profile.site.default_locale]
    site_layout = _site_layout(config, profile)
    made = {
        **config,
        "profile": profile.name,
        "family": family.name,
        "product_slug": config.get("product_slug", family.name),
        "product_name": config.get("product_name")
        or profile.product_name(family.name, platform.name),
        "target_platform": platform.name,
        "github_repo_url": _address(config["github_repo_url"]),
        "github_ref": config["github_ref"].lower(),
        "site_repo_url": _address(_site(config, profile, settings)),
        "site_ref": config.get("site_ref", profile.site.ref),
        "required_sections": sections,
        "locales": locales,
        "site_layout": site_layout,
        "templates_version": config.get("templates_version", profile.version),
        "ruleset_version": config.get("ruleset_version", profile.version),
        "publish": {"driver": _driver(config), **config["publish"]},
    }
    made.pop("locale", None)
    made.setdefault("platform_family", "node" if platform.name in NODE else platform.name)
    made.setdefault(
        "allowed_paths",
        profile.laid_out(site_layout).allowed_paths(
            sections,
            layout=layout,
            family=family.name,
            platform=platform.name,
            locales=locales,
        ),
    )
    return made


def _site(config: Mapping[str, Any], profile: Profile, settings: Settings) -> str:
    site = config.get("site_repo_url") or profile.site.repo_url or settings.launch_site
    if not site:
        raise missing(
            {"site_repo_url": []},
            "nothing says which repository the site is in",
            "Give site_repo_url, or set CLEATS_LAUNCH_SITE.",
        )
    return str(site)


def _address(url: str) -> str:
    """One spelling of a repository's address on the web; other addresses stay as they are."""
    if not url.startswith("https://"):
        return url
    return url.rstrip("/").removesuffix(".git").rstrip("/")


def _site_layout(config: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    given = config.get("site_layout", {})
    modes = given.get("localization", {}).get("mode_by_section", {})
    roots = {each.name: each.root for each in profile.sections}
    kinds = {each.name: each.localization for each in profile.sections}
    return {
        "content_root": given.get("content_root", profile.site.content_root),
        "subdomain_roots": {**roots, **given.get("subdomain_roots", {})},
        "localization": {"mode_by_section": {**kinds, **modes}},
    }


def _driver(config: Mapping[str, Any]) -> str:
    """How to publish, when that is not said: the way for which there is an address or a token."""
    if "commit_service" in config:
        return "service"
    return "github" if "token_env" in config["publish"] else "git"


def _fault(path: str, message: str) -> dict[str, str]:
    return {"path": path, "keyword": "profile", "message": message}


def _unfit(found: list[dict[str, str]]) -> ToolError:
    first = found[0]
    field = first["path"].removeprefix("/").partition("/")[0]
    about = artifacts.load(SCHEMA)["properties"].get(field, {}).get("description", "")
    hint = "The errors have a JSON Pointer each; "
    hint += "resource://launch/run_config.schema.json is the schema, docs/launch.md explains it."
    return ToolError(
        ErrorCode.SCHEMA_VALIDATION_FAILED,
        f"run_config does not fit its schema: {first['path'] or '/'}: {first['message']}",
        hint=f"{field}: {about} {hint}" if about else hint,
        details={"schema_id": SCHEMA, "errors": found},
    )
