"""The configuration must exist, parse, run no code, read nothing outside the site, and list the written pages.

Allowed are the themes `mkdocs` and `readthedocs`, the plugin `search` and the extensions of Python-Markdown.
"""

from collections.abc import Iterator

from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.site.mkdocs import CONFIG_NAMES, MkDocsConfig, read_mkdocs_config
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

CONFIG_MISSING = IssueKind("GATE_MKDOCS_CONFIG_MISSING", "blocker", "Add mkdocs.yml to the top of the site.")
CONFIG_INVALID = IssueKind("GATE_MKDOCS_CONFIG_INVALID", "blocker", "Repair the configuration of the site.")
CONFIG_REFUSED = IssueKind(
    "GATE_MKDOCS_CONFIG_REFUSED",
    "blocker",
    "Remove the setting: only sites whose configuration runs no code are built.",
)
NAV_INCOMPLETE = IssueKind(
    "GATE_MKDOCS_NAV_MISSING", "warn", "Add the page to `nav`, or allow the run to change mkdocs.yml (allowed_paths)."
)


def check_mkdocs_config(site: LaunchSite) -> Iterator[GateMessage]:
    config = read_mkdocs_config(CheckoutTree(site.job.site))
    if not config.path:
        yield CONFIG_MISSING.draft(f"the site has no configuration: looked for {', '.join(CONFIG_NAMES)}")
        return
    if config.fault:
        yield CONFIG_INVALID.draft(f"the configuration cannot be read: {config.fault}", config.path)
        return
    for refusal in config.refusals:
        yield CONFIG_REFUSED.draft(refusal.message, config.path, refusal.line)
    yield from _check_nav(site, config)


def _check_nav(site: LaunchSite, config: MkDocsConfig) -> Iterator[GateMessage]:
    listed = {f"{config.docs_folder}/{page}" for page in config.nav_pages}
    for file in site.files if config.has_nav else ():
        if file.plan and file.path not in listed:
            message = f"the navigation does not list the page {file.path}"
            yield NAV_INCOMPLETE.draft(message, config.path, config.lines.get("nav", 0))


GATE = Gate("mkdocs_config", __doc__, check_mkdocs_config, local_seconds=10.0, strict_seconds=20.0)
