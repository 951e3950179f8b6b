"""The command line and the environment of Hugo: it runs no programs, makes no requests and writes outside the site."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

HUGO_SANDBOX_VARIABLES: Final[Mapping[str, str]] = {
    "HUGO_SECURITY_EXEC_ALLOW": "none",
    "HUGO_SECURITY_EXEC_OSENV": "none",
    "HUGO_SECURITY_FUNCS_GETENV": "none",
    "HUGO_SECURITY_HTTP_URLS": "none",
    "HUGO_SECURITY_HTTP_METHODS": "none",
    "HUGO_MODULE_PROXY": "off",
    "HUGO_ENABLEGITINFO": "false",  # runs git, which is a program
    "HUGO_BUILD_BUILDSTATS_ENABLE": "false",  # writes into the worktree
}
"""Variables that keep Hugo from running programs, using the network or writing to the worktree."""


def build_hugo_environment(scratch: Path, outer_env: Mapping[str, str]) -> dict[str, str]:
    """Build the whole environment of Hugo; its folders are created below `scratch`."""
    folders = {name: scratch / "hugo" / name for name in ("cache", "resources", "home")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {
        **dict.fromkeys(("HOME", "TMPDIR", "PATH"), str(folders["home"])),  # an empty PATH: no program can be found
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "TZ": "UTC",
        "HUGO_CACHEDIR": str(folders["cache"]),
        "HUGO_RESOURCEDIR": str(folders["resources"]),
        **HUGO_SANDBOX_VARIABLES,
        **{name: outer_env[name] for name in ("SYSTEMROOT",) if name in outer_env},  # Windows needs it
    }


def list_source_options(site: Path, config: str, environment: str) -> list[str]:
    """Return the options that make Hugo use one configuration of a site."""
    config_options = ["--configDir", "config"] if config.startswith("config/") else ["--config", config]
    return ["--source", str(site), *config_options, "--environment", environment]


def list_server_arguments(site: Path, config: str, environment: str, port: int) -> list[str]:
    """Return the arguments of Hugo's server: on this machine only, and in memory."""
    options = ["--bind", "127.0.0.1", "--port", str(port), "--noBuildLock", "--renderToMemory", "--disableBrowserError"]
    return ["server", *options, *list_source_options(site, config, environment)]
