"""Which builds of the site a launch touches, and how Hugo is run for them.

Hugo runs what a site's configuration says, so it is told what it may do by its environment, which
wins over every configuration file: no program, no variable of the environment, no network. What
it writes goes to a folder of this validation; the worktree stays as it is.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from cleats.runtime import process
from cleats.toolsets.launch.gates.site import Site

FORBIDDEN: Final[Mapping[str, str]] = {
    "HUGO_SECURITY_EXEC_ALLOW": "none",
    "HUGO_SECURITY_EXEC_OSENV": "none",
    "HUGO_SECURITY_FUNCS_GETENV": "none",
    "HUGO_SECURITY_HTTP_URLS": "none",
    "HUGO_SECURITY_HTTP_METHODS": "none",
    "HUGO_MODULE_PROXY": "off",
    "HUGO_ENABLEGITINFO": "false",  # asks git, which is a program
    "HUGO_BUILD_BUILDSTATS_ENABLE": "false",  # writes into the worktree
}
_OURS: Final = frozenset({"cachedir", "resourcedir", "publishdir", "workingdir"})
"""Folders that we choose; what the site says about them does not count."""


@dataclass(frozen=True, slots=True)
class Build:
    """One configuration of the site, and the sections it is for."""

    name: str
    config: str
    sections: tuple[str, ...]
    hosts: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """How Hugo is told which configuration to take."""
        parts = PurePosixPath(self.config).parts
        if len(parts) > 1 and parts[0] == "config":
            return ["--configDir", "config"]
        return ["--config", self.config]


def builds(site: Site) -> tuple[list[Build], list[str]]:
    """The builds that the planned pages need, and the sections that no configuration covers."""
    by_config: dict[str, list[str]] = {}
    uncovered = []
    for section in dict.fromkeys(entry["section"] for entry in site.plan):
        configs = site.profile.hugo_configs(section, site.config["family"])
        there = next((each for each in configs if site.text(each) is not None), None)
        if there is None:
            uncovered.append(section)
        else:
            by_config.setdefault(there, []).append(section)
    made = []
    for config, sections in sorted(by_config.items()):
        hosts = (site.profile.section(each).host for each in sections)
        name = config.rsplit(".", 1)[0].replace("/", "_")
        made.append(Build(name, config, tuple(sections), tuple(sorted(filter(None, hosts)))))
    return made, uncovered


async def hugo(site: Site, build: Build, *words: str) -> process.Completed:
    """Run Hugo over the worktree; the gate's deadline ends it.

    Raises:
        StartError: it cannot be started.
    """
    home = site.scratch / "hugo"
    for folder in ("cache", "resources", "home"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    env = {
        "HOME": str(home / "home"),
        "TMPDIR": str(home / "home"),
        "PATH": str(home / "home"),  # empty: there is nothing to start
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "TZ": "UTC",
        "HUGO_CACHEDIR": str(home / "cache"),
        "HUGO_RESOURCEDIR": str(home / "resources"),
        **FORBIDDEN,
    }
    around = site.job.settings.get("git_env", {})
    env |= {name: around[name] for name in ("SYSTEMROOT",) if name in around}  # Windows needs it
    source = ["--source", str(site.job.site), *build.words]
    environment = ["--environment", site.profile.site.environment]
    argv = [site.programs["hugo"], *words, *source, *environment]
    return await process.run(argv, cwd=site.scratch, env=env)


async def settings(site: Site, build: Build) -> Mapping[str, Any] | None:
    """The configuration as Hugo understands it; None when it does not."""
    done = await hugo(site, build, "config", "--format", "json")
    if done.exit_code != 0:
        return None
    try:
        told: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return None
    return told


def outside(told: Mapping[str, Any], worktree: Path) -> list[str]:
    """What a configuration would have Hugo read outside the worktree."""
    found = []
    for name, value in _folders(told):
        place = (worktree / value).resolve()
        if not place.is_relative_to(worktree.resolve()):
            found.append(f"{name} = {value if not Path(value).is_absolute() else '(absolute)'}")
    return sorted(set(found))


def _folders(told: Any, above: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(told, list):
        for each in told:
            yield from _folders(each, above)
        return
    if not isinstance(told, dict):
        return
    for key, value in told.items():
        name = f"{above}.{key}" if above else key
        if above == "caches" or key in _OURS or name.startswith("params"):
            continue
        is_folder = key.endswith("dir") or name.endswith("mounts.source")
        values = value if isinstance(value, list) else [value]
        if is_folder and all(isinstance(each, str) for each in values):
            yield from ((name, each) for each in values)
        else:
            yield from _folders(value, name)
