"""Normalisation of a run configuration.

The result holds everything that a run needs, defaults included, in one spelling: two configurations
that mean the same become equal and have the same hash. A configuration that cannot be used is
rejected here, before a run exists, with the location of every fault.
"""

import hashlib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.launch.config import secrets
from cleats.toolsets.launch.profiles.model import Profile, load_named_profile
from cleats.toolsets.launch.profiles.parts import BRANCH_TEMPLATE_WORDS, CHANGE_TEMPLATE_WORDS, list_placeholders
from cleats.toolsets.launch.runs import artifacts


def apply_defaults(schema: Mapping[str, Any], document: Any) -> Any:
    """Return a copy of a value with the defaults of its schema filled in at every depth."""
    if not isinstance(document, Mapping):
        return deepcopy(document)
    result = {name: deepcopy(value) for name, value in document.items()}
    for name, rule in schema.get("properties", {}).items():
        if name not in result and "default" in rule:
            result[name] = deepcopy(rule["default"])
        if name in result:
            result[name] = apply_defaults(rule, result[name])
    return result


RUN_CONFIG_SCHEMA: Final = "run_config"

MAX_LINE_CHARACTERS: Final = 200
"""Longest permitted name, in characters."""

NODE_PLATFORMS: Final = frozenset({"javascript", "typescript"})
"""Platforms of the Node family: statements about Node apply to both."""


def normalise_config(raw_config: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return the normalised configuration of a run.

    Raises:
        ToolError: SCHEMA_VALIDATION_FAILED, with a JSON Pointer for every fault; INVALID_INPUT when
            the profile is unknown or no site repository is configured.
    """
    if faults := artifacts.find_faults(RUN_CONFIG_SCHEMA, raw_config):
        raise _schema_error(faults)
    config: dict[str, Any] = apply_defaults(artifacts.load_schema(RUN_CONFIG_SCHEMA), raw_config)
    profile = load_named_profile(config.get("profile", settings.launch.profile), settings.launch.profiles)
    if misfits := list(_find_misfits(config, profile, settings)):
        raise _schema_error([{"path": path, "keyword": "profile", "message": message} for path, message in misfits])
    return _complete_config(config, profile, settings)


def hash_config(config: Mapping[str, Any]) -> str:
    """Return the hash of the canonical JSON of a configuration, which identifies it."""
    return hashlib.sha256(artifacts.format_compact_json(config).encode()).hexdigest()


def missing_fields_error(fields: Mapping[str, list[str]], message: str, hint: str) -> ToolError:
    """Return an error that names the fields nobody could fill in, with candidate values."""
    return ToolError(
        ErrorCode.INVALID_INPUT,
        message,
        hint=hint,
        details={
            "missing_fields": list(fields),
            "suggested_values": {name: values for name, values in fields.items() if values},
        },
    )


def _find_misfits(config: Mapping[str, Any], profile: Profile, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the faults that the schema cannot express: against the profile and the settings."""
    for name in ("family", "product_slug"):
        is_family = name == "family" or "family" not in config
        if name in config and is_family and profile.find_family(config[name]) is None:
            known_names = ", ".join(item.name for item in profile.families.known)
            yield f"/{name}", f"unknown family {config[name]!r}; {profile.name} has: {known_names}"
    if profile.find_platform(config["target_platform"]) is None:
        known_names = ", ".join(item.name for item in profile.platforms)
        platform_name = config["target_platform"]
        yield "/target_platform", f"unknown platform {platform_name!r}; {profile.name} has: {known_names}"
    sections = [item.name for item in profile.sections]
    for number, name in enumerate(config["required_sections"]):
        if name not in sections:
            pointer = f"/required_sections/{number}"
            yield pointer, f"unknown section {name!r}; {profile.name} has: {', '.join(sections)}"
    yield from _find_bad_locales(config, profile)
    layout = profile.resolve_layout(config["layout_mode"], config["target_platform"])
    if missing_sections := [section.name for section in profile.sections if not section.paths.for_layout(layout)]:
        yield "/layout_mode", f"{profile.name} has no layout {layout} for {', '.join(missing_sections)}"
    yield from _find_bad_templates(config)
    yield from secrets.find_unreadable_urls(config)
    for path in _SINGLE_LINE_FIELDS:
        value = secrets.read_pointer(config, path)
        if value and not (value.isprintable() and len(value) <= MAX_LINE_CHARACTERS):
            yield path, f"expected one line of at most {MAX_LINE_CHARACTERS} printable characters"
    yield from ((path, f"reserved: {why}") for path, why in _RESERVED_FIELDS if secrets.read_pointer(config, path))
    yield from secrets.find_secret_violations(config, settings)


def _find_bad_locales(config: Mapping[str, Any], profile: Profile) -> Iterator[tuple[str, str]]:
    locales = config.get("locales", [])
    known_locales = f"{profile.name} has: {', '.join(profile.site.locales)}"
    if "locale" in config:
        if locales and [locale.lower() for locale in locales] != [config["locale"].lower()]:
            yield "/locale", "differs from locales; give one of the two"
        if profile.find_locale(config["locale"]) is None:
            yield "/locale", f"unknown language {config['locale']!r}; {known_locales}"
    for number, name in enumerate(locales):
        if profile.find_locale(name) is None:
            yield f"/locales/{number}", f"unknown language {name!r}; {known_locales}"


_TEMPLATE_FIELDS: Final = (
    ("publish", "branch", BRANCH_TEMPLATE_WORDS),
    ("commit_service", "commit_message_template", CHANGE_TEMPLATE_WORDS),
    ("commit_service", "commit_body_template", CHANGE_TEMPLATE_WORDS),
)


def _find_bad_templates(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for part, name, known_words in _TEMPLATE_FIELDS:
        for unknown in sorted(list_placeholders(config.get(part, {}).get(name, "")) - known_words):
            yield f"/{part}/{name}", f"{{{unknown}}} is not one of {', '.join(sorted(known_words))}"


_SINGLE_LINE_FIELDS: Final = (
    *("/product_name", "/llm/model", "/llm/fallback/model", "/telemetry/project"),
    *("/commit_service/author_name", "/commit_service/author_email"),
)
"""Fields that become a line, or part of a line, in pages, commits and records."""

_RESERVED_FIELDS: Final = (
    ("/extra_evidence_urls", "statements are based on the repository only"),
    ("/hugo/config_dir", "the profile sets the paths of the Hugo configurations"),
    ("/hugo/config_snapshot_dir", "the Hugo configurations are read from the site itself"),
)
"""Fields that other systems use and a run here ignores; they are rejected rather than ignored."""


def _complete_config(config: dict[str, Any], profile: Profile, settings: Settings) -> dict[str, Any]:
    family = profile.find_family(config.get("family") or config["product_slug"])
    platform = profile.find_platform(config["target_platform"])
    assert family is not None  # noqa: S101 - checked with all other faults
    assert platform is not None  # noqa: S101
    layout = profile.resolve_layout(config["layout_mode"], platform.name)
    section_order = [item.name for item in profile.sections]
    sections = sorted(config["required_sections"], key=section_order.index)
    locales = [config["locale"]] if "locale" in config else config.get("locales", [])
    locales = [str(profile.find_locale(item)) for item in locales] or [profile.site.default_locale]
    site_layout = _merge_site_layout(config, profile)
    # The driver of a configuration that names none follows from its endpoint or token.
    driver = "service" if "commit_service" in config else "github" if "token_env" in config["publish"] else "git"
    completed = {
        **config,
        "profile": profile.name,
        "family": family.name,
        "product_slug": config.get("product_slug", family.name),
        **_choose_product_name(config, profile, family.name, platform.name),
        "target_platform": platform.name,
        "github_repo_url": _normalise_url(config["github_repo_url"]),
        "github_ref": config["github_ref"].lower(),
        "site_repo_url": _normalise_url(_resolve_site_url(config, profile, settings)),
        "site_ref": config.get("site_ref", profile.site.ref),
        "required_sections": sections,
        "locales": locales,
        "site_layout": site_layout,
        "templates_version": config.get("templates_version", profile.version),
        "ruleset_version": config.get("ruleset_version", profile.version),
        "publish": {"driver": driver, **config["publish"]},
    }
    completed.pop("locale", None)
    completed.setdefault("platform_family", "node" if platform.name in NODE_PLATFORMS else platform.name)
    completed.setdefault(
        "allowed_paths",
        profile.with_site_layout(site_layout).list_allowed_paths(
            sections, layout=layout, family=family.name, platform=platform.name, locales=locales
        ),
    )
    return completed


def _choose_product_name(config: Mapping[str, Any], profile: Profile, family: str, platform: str) -> dict[str, str]:
    """Return the product's name, unless the repository itself decides on it.

    The naming scheme of a profile applies only to a repository that its registry lists for the product.
    """
    if name := config.get("product_name"):
        return {"product_name": str(name)}
    product = (_normalise_url(config["github_repo_url"]).lower(), family, platform)
    listed = {
        (_normalise_url(entry.repo_url).lower(), entry.family, entry.platform)
        for entry in profile.list_registered_products()
    }
    return {"product_name": profile.format_product_name(family, platform)} if product in listed else {}


def _resolve_site_url(config: Mapping[str, Any], profile: Profile, settings: Settings) -> str:
    site = config.get("site_repo_url") or profile.site.repo_url or settings.launch.site
    if not site:
        raise missing_fields_error(
            {"site_repo_url": []},
            "the repository of the site is unknown",
            "Give site_repo_url, or set CLEATS_LAUNCH_SITE.",
        )
    return str(site)


def _normalise_url(url: str) -> str:
    return url.rstrip("/").removesuffix(".git").rstrip("/") if url.startswith("https://") else url


def _merge_site_layout(config: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    layout = config.get("site_layout", {})
    roots, kinds = ({it.name: getattr(it, key) for it in profile.sections} for key in ("root", "localization"))
    modes = layout.get("localization", {}).get("mode_by_section", {})
    return {
        "content_root": layout.get("content_root", profile.site.content_root),
        "subdomain_roots": {**roots, **layout.get("subdomain_roots", {})},
        "localization": {"mode_by_section": {**kinds, **modes}},
    }


def _schema_error(faults: list[dict[str, str]]) -> ToolError:
    first = faults[0]
    field = first["path"].removeprefix("/").partition("/")[0]
    description = artifacts.load_schema(RUN_CONFIG_SCHEMA)["properties"].get(field, {}).get("description", "")
    hint = (
        "The errors have a JSON Pointer each; "
        "resource://launch/run_config.schema.json is the schema, docs/launch.md explains it."
    )
    return ToolError(
        ErrorCode.SCHEMA_VALIDATION_FAILED,
        artifacts.describe_misfit(RUN_CONFIG_SCHEMA, first),
        hint=f"{field}: {description} {hint}" if description else hint,
        details={"schema_id": RUN_CONFIG_SCHEMA, "errors": faults},
    )
