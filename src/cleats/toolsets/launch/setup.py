"""Construction of the engine, its store and fleet workers from the settings."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleats.runtime import spans
from cleats.settings import Settings, get_environment
from cleats.system.git import filter_git_environment
from cleats.toolsets.launch.config.secrets import load_secrets
from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.drive.leases import LeaseTiming
from cleats.toolsets.launch.drive.pipeline import WORKER_FUNCTIONS
from cleats.toolsets.launch.drive.run_driver import DriverResources, RecordObserver
from cleats.toolsets.launch.runs.job import WorkerLauncher
from cleats.toolsets.launch.store.databases import PostgresStore, SqliteStore
from cleats.toolsets.launch.store.run_store import RunStore

if TYPE_CHECKING:
    from cleats.toolsets.launch.fleet import FleetWorker

STORE_FILE_NAME: Final = "runs.sqlite"

_PASSED_VARIABLES: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TEMP", "TMP", "VIRTUAL_ENV")

_PIP_VARIABLES: Final = frozenset(
    {"HOME", "PATH", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
)


def get_launch_folder(settings: Settings) -> Path:
    """Return the folder that holds the runs of this user."""
    return settings.data_dir / "launch"


def get_runs_folder(settings: Settings) -> Path:
    """Return the folder with one folder per run."""
    runs_dir = settings.launch.runs_dir
    return Path(runs_dir) if runs_dir else get_launch_folder(settings) / "runs"


def build_engine(settings: Settings, observe: RecordObserver = lambda _run, _events: None) -> RunEngine:
    """Build the engine with its store; nothing is started. `observe` is called for every record."""
    resources = DriverResources(
        store=open_store(settings),
        runs=get_runs_folder(settings),
        workers=WorkerLauncher(WORKER_FUNCTIONS, _build_worker_env(settings), settings.grace),
        secrets=load_secrets(settings),
        settings=build_worker_settings(settings),
        observe=observe,
        tracer=spans.get_tracer(settings),
    )
    lease = settings.launch.lease
    return RunEngine(resources, LeaseTiming(lease_seconds=lease, renew_seconds=lease / 5))


def build_worker(settings: Settings, concurrency: int) -> "FleetWorker":
    """Build a worker for the fleet that the settings name."""
    from cleats.toolsets.launch.fleet import FleetWorker, RunQueue  # noqa: PLC0415 - an extra

    return FleetWorker(
        build_engine(settings), RunQueue(settings.database_url), concurrency=concurrency, drain=settings.drain
    )


def open_store(settings: Settings) -> RunStore:
    """Return the store of runs: a file of this user, or the database of a fleet."""
    if settings.database_url:
        return PostgresStore(settings.database_url)
    return SqliteStore(get_launch_folder(settings) / STORE_FILE_NAME)


def build_worker_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings that workers need, as plain JSON."""
    return {
        "git_env": filter_git_environment(get_environment(settings)),
        "profiles": [str(profile_folder) for profile_folder in settings.launch.profiles],
        "hugo": settings.launch.hugo,
        "offline": settings.launch.offline == "on",
        "link_hosts": list(settings.launch.link_hosts),
        "models": settings.launch.models == "on",
        "endpoints": list(settings.launch.endpoints),
        **({"run_snippets": _build_snippet_settings(settings)} if settings.launch.run_snippets == "on" else {}),
    }


def _build_snippet_settings(settings: Settings) -> dict[str, Any]:
    """Return the folder of environments, and the variables that pip may see: its own and those of the network."""
    pip_env = {
        name: value
        for name, value in get_environment(settings).items()
        if name.startswith("PIP_") or name.upper() in _PIP_VARIABLES
    }
    return {"cache": str(settings.cache_dir / "launch" / "environments"), "pip_env": pip_env}


def _build_worker_env(settings: Settings) -> dict[str, str] | None:
    """Build the environment of the workers, without any secret of the server's environment."""
    environ = get_environment(settings)
    if not environ:
        return None
    python = {name: value for name, value in environ.items() if name.startswith("PYTHON")}
    passed = {name: environ[name] for name in _PASSED_VARIABLES if name in environ}
    return {**filter_git_environment(environ), **passed, **python}
