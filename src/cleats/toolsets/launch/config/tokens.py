"""Which secrets a run may use, and who may get them.

A configuration names a secret by the variable that holds it. Only names that the operator listed
are ever looked up, and only an address of the operator's, or one on this machine, is sent a
secret; so nobody who can start a run can read the environment or have a token delivered.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from cleats.settings import Settings

GITHUB_API: Final = "https://api.github.com"
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Need(NamedTuple):
    """A place in a configuration that names a secret, and the address that gets it."""

    path: str
    name: str
    endpoint_path: str
    endpoint: str


_PLACES: Final = (
    ("/llm/api_key_env", "/llm/api_base_url", ""),
    ("/llm/fallback/api_key_env", "/llm/fallback/api_base_url", ""),
    ("/publish/token_env", "/publish/endpoint_url", GITHUB_API),
    ("/commit_service/github_token_env", "/commit_service/endpoint_url", ""),
    ("/telemetry/auth_token_env", "/telemetry/endpoint_url", ""),
)


def needs(config: Mapping[str, Any]) -> list[Need]:
    """Every secret that a configuration names."""
    return [
        Need(place, str(name), endpoint, str(_at(config, endpoint) or default))
        for place, endpoint, default in _PLACES
        if (name := _at(config, place))
    ]


def refusals(config: Mapping[str, Any], settings: Settings) -> Iterator[tuple[str, str]]:
    """The places of a configuration that ask for what the operator did not allow, and why."""
    for place, endpoint, _ in _PLACES:
        if (address := _at(config, endpoint)) and not _plain(address):
            name = place.rpartition("/")[2]
            yield endpoint, f"has a user, a query or a fragment; a secret is named in {name}"
    for need in needs(config):
        if need.name not in settings.launch_secrets:
            yield need.path, f"{need.name} is not among the variables of launch_secrets"
        elif not trusted(need.endpoint, settings.launch_endpoints):
            yield need.endpoint_path, "is not among the addresses of launch_endpoints"


def unreadable(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The addresses of a configuration that cannot be taken apart."""
    repositories = ("/github_repo_url", "/site_repo_url", "/workflows_repo_url")
    for path in (*repositories, *(endpoint for _, endpoint, _ in _PLACES)):
        try:
            _ = urlsplit(str(_at(config, path) or "")).port
        except ValueError:
            yield path, "cannot be read as an address"


def trusted(endpoint: str, endpoints: Sequence[str]) -> bool:
    """Whether an address may be sent a secret: on this machine, or at or below one listed."""
    asked = _place(endpoint)
    if asked is None:
        return False
    scheme, host, _, path = asked
    if host in LOOPBACK:
        return True
    return any(
        known is not None and asked[:3] == known[:3] and _below(path, known[3])
        for known in map(_place, endpoints)
        if scheme == "https" or known is not None
    )


USERS: Final[Mapping[str, tuple[str, ...]]] = {
    "draft": ("/llm/",),
    "commit": ("/publish/", "/commit_service/"),
    "request": ("/publish/", "/commit_service/"),
}
"""Which kinds of steps need a secret, and from which parts of the configuration."""


def granted(kind: str, config: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, str]:
    """Of these secrets, what a kind of step is given: those that its own part of the run names."""
    parts = USERS.get(kind, ())
    return {
        need.name: secrets[need.name]
        for need in needs(config)
        if need.path.startswith(parts) and need.name in secrets
    }


def _at(config: Mapping[str, Any], path: str) -> Any:
    value: Any = config
    for part in path.strip("/").split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _place(address: str) -> tuple[str, str, int | None, str] | None:
    try:
        parts = urlsplit(address)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        return None
    return parts.scheme, parts.hostname.lower(), port, parts.path.rstrip("/")


def _plain(address: str) -> bool:
    """Whether an address is shown to everybody without a thought: it holds nothing but a place."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return not ("@" in parts.netloc or parts.query or parts.fragment)


def _below(path: str, known: str) -> bool:
    return ".." not in path.split("/") and (path == known or path.startswith(f"{known}/"))
