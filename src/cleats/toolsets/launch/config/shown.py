"""A repository's address as others may see it: no user, no password, no path of this machine."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

_SCP = re.compile(r"^(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]{2,}):(?!//)(?P<path>[^\\].*)$")
"""`git@host:owner/name`; a single letter before the colon is a drive."""


def shown(url: str) -> str:
    """The address without userinfo, query and fragment; `local:<folder name>` for a local one."""
    address = url.strip()
    if address.startswith("local:"):
        return address
    if (scp := _SCP.match(address)) and "://" not in address:
        return f"ssh://{scp['host']}/{scp['path'].lstrip('/')}"
    parts = urlsplit(address)
    if parts.scheme.lower() in ("http", "https", "ssh", "git") and parts.hostname:
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        port = f":{parts.port}" if parts.port else ""
        return urlunsplit((parts.scheme.lower(), host + port, parts.path, "", ""))
    path = parts.path if parts.scheme.lower() == "file" else address
    return f"local:{PurePosixPath(path.replace(chr(92), '/').rstrip('/')).name}"


_ADDRESSES = ("github_repo_url", "site_repo_url", "workflows_repo_url")


def shown_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as others may see it: every address as `shown` has it."""
    return {
        name: shown(value) if name in _ADDRESSES and isinstance(value, str) else value
        for name, value in config.items()
    }
