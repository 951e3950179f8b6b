"""The secrets a run may use, and the endpoints that may receive them.

A configuration names a secret by its environment variable. Only variables and endpoints that the
operator listed, and this machine, are used: nobody who can start a run can have a token delivered.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from cleats.settings import Settings, get_environment

GITHUB_API_URL: Final = "https://api.github.com"
LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})


_SECRET_FIELDS: Final = (
    ("/llm/api_key_env", "/llm/api_base_url", ""),
    ("/llm/fallback/api_key_env", "/llm/fallback/api_base_url", ""),
    ("/publish/token_env", "/publish/endpoint_url", GITHUB_API_URL),
    ("/commit_service/github_token_env", "/commit_service/endpoint_url", ""),
    ("/telemetry/auth_token_env", "/telemetry/endpoint_url", ""),
)
"""The fields that name a secret, the field of the endpoint that receives each, and its default."""


def find_secret_violations(config: Mapping[str, Any], settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the fields that ask for what the operator did not allow, with reasons."""
    for path, endpoint_path, _ in _SECRET_FIELDS:
        if (address := read_pointer(config, endpoint_path)) and not _is_plain_url(address):
            name = path.rpartition("/")[2]
            yield endpoint_path, f"has a user, a query or a fragment; name the variable of a secret in {name}"
    for path, endpoint_path, default in _SECRET_FIELDS:
        endpoint = str(read_pointer(config, endpoint_path) or default)
        name = read_pointer(config, path)
        if name and name not in settings.launch.secrets:
            yield path, f"{name} is not listed in the setting launch_secrets"
        elif name and not is_trusted_endpoint(endpoint, settings.launch.endpoints):
            yield endpoint_path, "is not listed in the setting launch_endpoints"


def find_unreadable_urls(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the URLs of a configuration that cannot be parsed."""
    repositories = ("/github_repo_url", "/site_repo_url", "/workflows_repo_url")
    for path in (*repositories, *(endpoint for _, endpoint, _ in _SECRET_FIELDS)):
        try:
            _ = urlsplit(str(read_pointer(config, path) or "")).port
        except ValueError:
            yield path, "cannot be read as an address"


def is_trusted_endpoint(endpoint: str, endpoints: Sequence[str]) -> bool:
    """Return whether an endpoint may receive a secret: it is local, or at or below a listed one."""
    target = _parse_endpoint(endpoint)
    if target is None:
        return False
    if target[1] in LOOPBACK_HOSTS:
        return True
    path = target[3]
    return ".." not in path.split("/") and any(
        target[:3] == trusted[:3] and (path == trusted[3] or path.startswith(f"{trusted[3]}/"))
        for trusted in filter(None, map(_parse_endpoint, endpoints))
    )


def load_secrets(settings: Settings) -> dict[str, str]:
    """Return the tokens that runs may use, by the names of their environment variables."""
    environ = get_environment(settings)
    return {name: environ[name] for name in settings.launch.secrets if name in environ}


SECRET_PARTS_BY_STEP: Final[Mapping[str, tuple[str, ...]]] = {
    "draft": ("/llm/",),
    "commit": ("/publish/", "/commit_service/"),
    "request": ("/publish/", "/commit_service/"),
}
"""The kinds of steps that need secrets, with the parts of the configuration that name them."""


def select_step_secrets(kind: str, config: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets for a kind of step: those that its parts of the configuration name."""
    parts = SECRET_PARTS_BY_STEP.get(kind, ())
    names = [read_pointer(config, path) for path, _, _ in _SECRET_FIELDS if path.startswith(parts)]
    return {name: secrets[name] for name in names if name in secrets}


def read_pointer(config: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path such as `/llm/model`, or None."""
    value: Any = config
    for part in path.strip("/").split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _parse_endpoint(address: str) -> tuple[str, str, int | None, str] | None:
    try:
        parts = urlsplit(address)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        return None
    return parts.scheme, parts.hostname.lower(), port, parts.path.rstrip("/")


def _is_plain_url(address: str) -> bool:
    """Return whether a URL is safe to show: it has no userinfo, query or fragment."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return not ("@" in parts.netloc or parts.query or parts.fragment)


_SCP_URL_PATTERN = re.compile(r"^(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]{2,}):(?!//)(?P<path>[^\\].*)$")
"""`git@host:owner/name`; a single letter before the colon is a drive."""


def redact_url(url: str) -> str:
    """Return a URL without userinfo, query and fragment; `local:<folder name>` for a local path."""
    address = url.strip()
    if address.startswith("local:"):
        return address
    if (scp := _SCP_URL_PATTERN.match(address)) and "://" not in address:
        return f"ssh://{scp['host']}/{scp['path'].lstrip('/')}"
    parts = urlsplit(address)
    if parts.scheme.lower() in ("http", "https", "ssh", "git") and parts.hostname:
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        port = f":{parts.port}" if parts.port else ""
        return urlunsplit((parts.scheme.lower(), host + port, parts.path, "", ""))
    path = parts.path if parts.scheme.lower() == "file" else address
    return f"local:{PurePosixPath(path.replace(chr(92), '/').rstrip('/')).name}"


_URL_FIELDS = ("github_repo_url", "site_repo_url", "workflows_repo_url")


def redact_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration in which every repository URL is redacted."""
    return {
        name: redact_url(value) if name in _URL_FIELDS and isinstance(value, str) else value
        for name, value in config.items()
    }
