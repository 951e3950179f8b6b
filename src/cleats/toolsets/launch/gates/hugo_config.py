"""A configuration of the site covers every planned section, parses, and keeps to the site."""

from collections.abc import Iterator
from typing import Any

from cleats.toolsets.launch.gates.builds import builds, outside
from cleats.toolsets.launch.gates.model import Gate, Said, blocker, error
from cleats.toolsets.launch.gates.site import Site
from cleats.toolsets.launch.source import tables


def check(site: Site) -> Iterator[Said]:
    made, uncovered = builds(site)
    for section in uncovered:
        wanted = site.profile.hugo_configs(section, site.config["family"])
        message = f"no configuration covers the section {section}: looked for {', '.join(wanted)}"
        yield blocker("GATE_HUGO_CONFIG_MISSING", message)
    for build in made:
        yield f"{build.config}: {', '.join(build.sections)}"
        try:
            told = tables.parse(build.config, site.text(build.config) or "")
        except ValueError as wrong:
            message = f"the configuration cannot be read: {wrong}"
            yield blocker("GATE_HUGO_CONFIG_INVALID", message, build.config)
            continue
        for place in outside(_lower(told), site.job.site):
            message = f"the configuration reads outside the site: {place}"
            yield blocker("GATE_HUGO_CONFIG_OUTSIDE", message, build.config)
        if not str(_lower(told).get("baseurl", "")) and not build.config.startswith("config/"):
            message = "the configuration has no baseURL"
            yield error("GATE_HUGO_CONFIG_BASE", message, build.config)


def _lower(told: Any) -> Any:
    """Hugo's keys ignore case."""
    if isinstance(told, dict):
        return {str(key).lower(): _lower(value) for key, value in told.items()}
    return [_lower(each) for each in told] if isinstance(told, list) else told


GATE = Gate(name="hugo_config", purpose=__doc__, check=check, local=10.0, strict=20.0)
