"""The kind of a site, and what a run does differently because of it.

A profile is for one kind of site and can name alternatives for others. Which one a run uses is known once the site is
cloned: the first whose configuration the site has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from cleats.toolsets.launch.profiles.model import Profile, load_named_profile
from cleats.toolsets.launch.site.hugo_kind import HugoKind
from cleats.toolsets.launch.site.kinds import SiteKind
from cleats.toolsets.launch.site.mkdocs_kind import MkDocsKind
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

SITE_KINDS: Final[Mapping[str, SiteKind]] = MappingProxyType({"hugo": HugoKind(), "mkdocs": MkDocsKind()})


def get_site_kind(profile: Profile) -> SiteKind:
    """Return the kind of the sites of a profile."""
    return SITE_KINDS[profile.site.kind]


def find_site_config(config: Mapping[str, Any], profile: Profile, tree: CheckoutTree) -> tuple[str, list[str]]:
    """Return the first configuration of a site that exists, and the names that were looked for."""
    kind = get_site_kind(profile)
    candidates = [
        path
        for section in config["required_sections"]
        for path in kind.list_configs(profile, section, str(config["family"]))
    ]
    names = list(dict.fromkeys(candidates))
    return next((path for path in names if path in tree.path_set), ""), names


def choose_profile(config: Mapping[str, Any], tree: CheckoutTree, folders: Sequence[Path | str]) -> Profile:
    """Return the profile of a configuration, or its first alternative for the kind of site that was cloned.

    Raises:
        ToolError: as `load_named_profile`.
    """
    profile = load_named_profile(config["profile"], folders)
    for name in (profile.name, *profile.site.alternatives):
        candidate = load_named_profile(name, folders)
        has_sections = {section.name for section in candidate.sections}.issuperset(config["required_sections"])
        if has_sections and find_site_config(config, candidate, tree)[0]:
            return candidate
    return profile


@dataclass(frozen=True, slots=True)
class _SiteDefaults:
    """The values of a configuration that a profile decides."""

    profile: Profile
    content_root: str

    def build_layout(self) -> dict[str, Any]:
        sections = self.profile.sections
        return {
            "content_root": self.content_root,
            "subdomain_roots": {section.name: section.root for section in sections},
            "localization": {"mode_by_section": {section.name: section.localization for section in sections}},
        }

    def list_allowed_paths(self, config: Mapping[str, Any], site_layout: Mapping[str, Any]) -> list[str]:
        layout = self.profile.resolve_layout(config["layout_mode"], config["target_platform"])
        return self.profile.with_site_layout(site_layout).list_allowed_paths(
            config["required_sections"],
            layout=layout,
            family=config["family"],
            platform=config["target_platform"],
            locales=config["locales"],
        )


def adapt_config(config: Mapping[str, Any], tree: CheckoutTree, folders: Sequence[Path | str]) -> dict[str, Any]:
    """Return the values of a normalised configuration that change for the kind of site that was cloned.

    Only values that are the defaults of the profile change; what a configuration decides itself stays.

    Raises:
        ToolError: as `load_named_profile`.
    """
    profile = load_named_profile(config["profile"], folders)
    chosen = choose_profile(config, tree, folders)
    kind = get_site_kind(chosen)
    content_root, menu_files = kind.locate_content(tree, chosen), kind.list_menu_files(tree)
    if chosen is profile and content_root == profile.site.content_root and not menu_files:
        return {}
    old = _SiteDefaults(profile, profile.site.content_root)
    new = _SiteDefaults(chosen, content_root)
    site_layout = _replace_defaults(config["site_layout"], old.build_layout(), new.build_layout())
    changed = {
        "profile": chosen.name,
        "site_layout": site_layout,
        **{
            name: chosen.version if config[name] == profile.version else config[name]
            for name in ("templates_version", "ruleset_version")
        },
    }
    if config["allowed_paths"] == old.list_allowed_paths(config, config["site_layout"]):
        changed["allowed_paths"] = sorted({*new.list_allowed_paths(config, site_layout), *menu_files})
    return {name: value for name, value in changed.items() if config[name] != value}


def _replace_defaults(value: Any, old: Any, new: Any) -> Any:
    """Return a value with each part that is the old default replaced by the new one, at every depth."""
    if isinstance(value, Mapping) and isinstance(old, Mapping) and isinstance(new, Mapping):
        return {name: _replace_defaults(item, old.get(name), new.get(name, item)) for name, item in value.items()}
    return new if value == old else value
