"""A configuration must cover every planned section, parse, and read nothing outside the site."""

from collections.abc import Iterator

from cleats.toolsets.launch.gates.hugo_build import find_outside_folders, plan_builds
from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.site.hugo import lower_keys
from cleats.toolsets.launch.source.checkout import safe_parsing

CONFIG_MISSING = IssueKind(
    "GATE_HUGO_CONFIG_MISSING", "blocker", "Add the configuration to the site, or omit the section."
)
CONFIG_INVALID = IssueKind("GATE_HUGO_CONFIG_INVALID", "blocker", "Repair the configuration of the site.")
BASE_URL_MISSING = IssueKind("GATE_HUGO_CONFIG_BASE", "error", "Set baseURL in the configuration of the site.")
OUTSIDE_FOLDER = IssueKind(
    "GATE_HUGO_CONFIG_OUTSIDE", "blocker", "Keep mounts and folders of the configuration inside the site."
)


def check_hugo_config(site: LaunchSite) -> Iterator[GateMessage]:
    hugo_builds, uncovered = plan_builds(site)
    for section in uncovered:
        config_paths = ", ".join(site.profile.list_hugo_configs(section, site.config["family"]))
        yield CONFIG_MISSING.draft(f"no configuration covers the section {section}: looked for {config_paths}")
    for build in hugo_builds:
        yield f"{build.config}: {', '.join(build.sections)}"
        try:
            document = safe_parsing.parse_document(build.config, site.read_text(build.config) or "")
        except ValueError as parse_error:
            yield CONFIG_INVALID.draft(f"the configuration cannot be read: {parse_error}", build.config)
            continue
        hugo_settings = lower_keys(document, deep=True)
        for folder in find_outside_folders(hugo_settings, site.job.site):
            yield OUTSIDE_FOLDER.draft(f"the configuration reads outside the site: {folder}", build.config)
        if not str(hugo_settings.get("baseurl", "")) and not build.config.startswith("config/"):
            yield BASE_URL_MISSING.draft("the configuration has no baseURL", build.config)


GATE = Gate("hugo_config", __doc__, check_hugo_config, local_seconds=10.0, strict_seconds=20.0)
