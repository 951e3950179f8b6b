"""A configuration must cover every planned section, parse, and read nothing outside the site."""

from collections.abc import Iterator
from typing import Any

from cleats.toolsets.launch.gates.hugo_build import find_outside_folders, plan_builds
from cleats.toolsets.launch.gates.model import Gate, GateMessage, LaunchSite, make_blocker, make_error
from cleats.toolsets.launch.source.checkout import safe_parsing


def check_hugo_config(site: LaunchSite) -> Iterator[GateMessage]:
    hugo_builds, uncovered = plan_builds(site)
    for section in uncovered:
        config_paths = site.profile.list_hugo_configs(section, site.config["family"])
        message = f"no configuration covers the section {section}: looked for {', '.join(config_paths)}"
        yield make_blocker("GATE_HUGO_CONFIG_MISSING", message)
    for build in hugo_builds:
        yield f"{build.config}: {', '.join(build.sections)}"
        try:
            hugo_settings = safe_parsing.parse_document(build.config, site.read_text(build.config) or "")
        except ValueError as parse_error:
            message = f"the configuration cannot be read: {parse_error}"
            yield make_blocker("GATE_HUGO_CONFIG_INVALID", message, build.config)
            continue
        for folder in find_outside_folders(_lower_keys(hugo_settings), site.job.site):
            message = f"the configuration reads outside the site: {folder}"
            yield make_blocker("GATE_HUGO_CONFIG_OUTSIDE", message, build.config)
        if not str(_lower_keys(hugo_settings).get("baseurl", "")) and not build.config.startswith("config/"):
            message = "the configuration has no baseURL"
            yield make_error("GATE_HUGO_CONFIG_BASE", message, build.config)


def _lower_keys(node: Any) -> Any:
    """Lower-case all keys, because Hugo ignores their case."""
    if isinstance(node, dict):
        return {str(key).lower(): _lower_keys(value) for key, value in node.items()}
    return [_lower_keys(item) for item in node] if isinstance(node, list) else node


GATE = Gate(name="hugo_config", purpose=__doc__, check=check_hugo_config, local_seconds=10.0, strict_seconds=20.0)
