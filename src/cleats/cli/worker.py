"""The `cleats worker` command."""

from pathlib import Path

import click
from msgspec.structs import replace

from cleats.settings import SettingError, Settings


@click.command()
@click.option(
    "--concurrency",
    type=click.IntRange(0, 64),
    default=2,
    show_default=True,
    help="Runs that are driven at the same time; 0 for a machine that drives none.",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A repository whose index is built and published, and kept up to date.",
)
@click.pass_obj
def worker(settings: Settings, /, concurrency: int, repo: Path | None) -> None:
    """Work for a fleet until SIGINT or SIGTERM.

    With CLEATS_DATABASE_URL set, drive launch runs: those that servers put into the queue, and
    those whose worker was lost. All of them need the same CLEATS_LAUNCH_RUNS_DIR, on storage that
    they share.

    With --repo, build the index of a repository, publish it to CLEATS_INDEX_URL, and do so again
    whenever its files change; servers with the same CLEATS_INDEX_URL and CLEATS_INDEX_NAME pull it.
    With CLEATS_OPENSEARCH_URL it is published there, and servers with the same search in it.

    \b
    Examples:
      cleats worker --concurrency 4       with CLEATS_DATABASE_URL=postgresql://db/cleats
      cleats worker --repo ~/src/project  with CLEATS_INDEX_URL=/shared/indexes
    """  # noqa: D301 - click reads the backspace
    if repo is not None:
        if not (settings.index_url or settings.opensearch_url):
            raise SettingError("index_url: say where to publish the index (CLEATS_INDEX_URL, or CLEATS_OPENSEARCH_URL)")
        settings = replace(settings, project_dir=repo.absolute(), index_share="publish")
    if not (settings.database_url and concurrency) and repo is None:
        raise SettingError("database_url: say which database has the runs (CLEATS_DATABASE_URL), or name a --repo")
    from cleats import app  # noqa: PLC0415
    from cleats.runtime.background_writer import log_to_stderr  # noqa: PLC0415

    log_to_stderr(settings.log_level)
    app.run_server(app.run_worker, settings, concurrency, repo is not None)
