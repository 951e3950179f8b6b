"""The engine as the settings want it: where its store is, what its workers may know."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleats.runtime import spans
from cleats.settings import Settings, surroundings
from cleats.toolsets.launch.drive.course import Observe
from cleats.toolsets.launch.drive.driver import Engine
from cleats.toolsets.launch.drive.leases import Pace
from cleats.toolsets.launch.source.git import kept
from cleats.toolsets.launch.store.port import RunStore
from cleats.toolsets.launch.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from cleats.toolsets.launch.fleet.worker import Worker

STORE: Final = "runs.sqlite"

_PASSED: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TEMP", "TMP", "VIRTUAL_ENV")


def folder(settings: Settings) -> Path:
    """Where the runs of this user are kept."""
    return settings.data_dir / "launch"


def engine(settings: Settings, observe: Observe = lambda _run, _events: None) -> Engine:
    """The engine; its store is opened, nothing is started. `observe` hears of every record."""
    runs = settings.launch_runs_dir
    return Engine(
        store(settings),
        Path(runs) if runs else folder(settings) / "runs",
        settings=worker_settings(settings),
        secrets=secrets(settings),
        env=_environment(settings),
        grace=settings.grace,
        pace=Pace(lease=settings.launch_lease, renew=settings.launch_lease / 5),
        observe=observe,
        tracer=spans.tracer(settings),
    )


def worker(settings: Settings, concurrency: int) -> "Worker":
    """A worker of the fleet that the settings name."""
    from cleats.toolsets.launch.fleet.jobs import Jobs  # noqa: PLC0415 - an extra
    from cleats.toolsets.launch.fleet.worker import Worker  # noqa: PLC0415

    return Worker(
        engine(settings), Jobs(settings.database_url), concurrency=concurrency, drain=settings.drain
    )


def store(settings: Settings) -> RunStore:
    """Where the runs are: a file of this user, or the database of a fleet."""
    if settings.database_url:
        from cleats.toolsets.launch.store.postgres import PostgresStore  # noqa: PLC0415 - an extra

        return PostgresStore(settings.database_url)
    return SqliteStore(folder(settings) / STORE)


def secrets(settings: Settings) -> dict[str, str]:
    """The tokens that runs may use, by the names of their variables."""
    environ = surroundings(settings)
    return {name: environ[name] for name in settings.launch_secrets if name in environ}


def worker_settings(settings: Settings) -> dict[str, Any]:
    """What workers need to know, as plain JSON."""
    return {
        "git_env": kept(surroundings(settings)),
        "profiles": [str(each) for each in settings.launch_profiles],
        "hugo": settings.launch_hugo,
        "offline": settings.launch_offline == "on",
        "link_hosts": list(settings.launch_link_hosts),
        "models": settings.launch_models == "on",
        "endpoints": list(settings.launch_endpoints),
    }


def _environment(settings: Settings) -> dict[str, str] | None:
    """The environment of the workers: no secret is in it, whatever ours holds."""
    environ = surroundings(settings)
    if not environ:
        return None
    python = {name: value for name, value in environ.items() if name.startswith("PYTHON")}
    passed = {name: environ[name] for name in _PASSED if name in environ}
    return {**kept(environ), **passed, **python}
