"""Findings and decisions on three machines that share only a database."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cleats.contract.errors import ErrorCode
from cleats.settings import make_settings
from cleats.toolsets.code.composition import open_indexes
from cleats.toolsets.code.records.archive import RecordArchive
from tests.support.http_client import CLEATS_COMMAND, WebServer, run_web_server
from tests.support.postgres import create_database, make_unreachable
from tests.support.triage import REPORTS_FOLDER, TriageShop
from tests.support.waiting import WAIT_TIMEOUT_SECONDS, wait_until

pytestmark = pytest.mark.timeout(400)  # servers and a worker, on whatever cores there are


def make_machine_environ(folder: Path, url: str, shared: Path) -> dict[str, str]:
    """Return the settings of a machine: its own folders, and what it shares."""
    (folder / "project").mkdir(parents=True)
    return {
        "CLEATS_CACHE_DIR": str(folder / "cache"),
        "CLEATS_DATA_DIR": str(folder / "data"),
        "CLEATS_PROJECT_DIR": str(folder / "project"),
        "CLEATS_DATABASE_URL": url,
        "CLEATS_INDEX_URL": str(shared),
        "CLEATS_INDEX_NAME": "shop",
        "CLEATS_INDEX_POLL": "0.05",
        "CLEATS_TELEMETRY": "off",
    }


@contextmanager
def start_reader(folder: Path, url: str, shared: Path) -> Iterator[WebServer]:
    environ = make_machine_environ(folder, url, shared)
    with run_web_server(*CLEATS_COMMAND, "code", home=folder, **environ) as web:
        yield web


@contextmanager
def start_worker(folder: Path, url: str, shared: Path, repo: Path) -> Iterator[None]:
    environ = {**os.environ, **make_machine_environ(folder, url, shared)}
    words = ["worker", "--concurrency", "0", "--repo", str(repo)]
    argv = [sys.executable, "-m", "cleats", *words]
    process = subprocess.Popen(argv, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(WAIT_TIMEOUT_SECONDS)


def search_files(web: WebServer, **arguments: Any) -> set[str]:
    """Return the record files that a search finds."""
    reply = web.call_tool("search", query="improper OR prototype", mode="records", **arguments)
    return {hit["file"] for hit in reply.result["records"]} if reply.status == 200 else set()


def test_what_one_server_learns_every_other_knows(tmp_path: Path) -> None:
    url, shared = create_database(), tmp_path / "shared"
    shop = TriageShop.create(tmp_path / "checkout")
    report = (REPORTS_FOLDER / "dependabot.json").read_text()

    with (
        start_reader(tmp_path / "left", url, shared) as left_server,
        start_reader(tmp_path / "right", url, shared) as right_server,
        start_worker(tmp_path / "maker", url, shared, shop.root),
    ):
        (tmp_path / "left/project/alerts.json").write_text(report)
        ingested = left_server.call_tool(
            "triage_ingest",
            source="dependabot",
            inputPath="alerts.json",
            meta={"service": "shop"},
            buildIndex=True,
        )
        [first, second] = ingested.result["recordIds"]
        [warning] = ingested.json["_meta"]["warnings"]
        decision = right_server.call_tool("triage_decision", finding=first, status="accept", expires="2099-01-31")
        [past] = left_server.call_tool("triage_context_pack", recordId=first).result["history"]
        assert (warning["code"], "index" in ingested.result) == ("index_elsewhere", False)
        assert (past["recordId"], past["expired"]) == (decision.result["recordId"], False)

        expected = [{f".cleats/records/{item}.md" for item in (first, second)}] * 2
        meta = {"recordType": "finding", "service": "shop"}
        wait_until(lambda: [search_files(web, meta=meta) for web in (left_server, right_server)] == expected)
        decided = {f".cleats/records/{decision.result['recordId']}.md"}
        wait_until(lambda: search_files(left_server, metaJson='{"recordType": "decision"}') == decided)
        pack = right_server.call_tool("triage_context_pack", recordId=first).result
        assert "app/loader.py" in json.dumps(pack["repoEvidence"])

        def record_decision(number: int) -> str:
            web = (left_server, right_server)[number % 2]
            reply = web.call_tool("triage_decision", finding=second, status="defer")
            record_id: str = reply.result["recordId"]
            return record_id

        with ThreadPoolExecutor(8) as pool:
            ids = set(pool.map(record_decision, range(16)))
        decision_ids = {
            item.record_id for item in open_record_archive(tmp_path / "third", url).iter_records("decision")
        }
        assert len(ids) == 16
        assert decision_ids == {*ids, decision.result["recordId"]}

        with make_unreachable(url):
            wait_until(lambda: right_server.get("/ready").status == 503)
            refused = right_server.call_tool("triage_decision", finding=first, status="fix")
            assert search_files(right_server, meta=meta) == expected[0]
        wait_until(lambda: right_server.get("/ready").status == 200)
        assert right_server.call_tool("triage_decision", finding=first, status="fix").status == 200

    with psycopg.connect(url) as connection:
        jobs = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
    assert jobs == (None,), "nothing was asked to drive runs"
    assert (refused.status, refused.error["code"]) == (503, "UNAVAILABLE")
    assert refused.error["details"]["retryable"] is True


def open_record_archive(folder: Path, url: str) -> RecordArchive:
    """Return the records as yet another machine has them."""
    environ = make_machine_environ(folder, url, folder)
    settings = make_settings(
        cache_dir=Path(environ["CLEATS_CACHE_DIR"]),
        project_dir=Path(environ["CLEATS_PROJECT_DIR"]),
        database_url=url,
        index_name="shop",
    )
    indexes = open_indexes(settings)
    return indexes.records.open(indexes.find_repository(None)).refresh()


def test_an_index_that_is_only_read_here_never_has_the_records_of_a_folder(tmp_path: Path) -> None:
    shop = TriageShop.create(tmp_path)
    shop.index_url = str(tmp_path / "shared")
    report = str(REPORTS_FOLDER / "dependabot.json")

    error = shop.expect_error("triage_ingest", source="dependabot", inputPath=report, buildIndex=True)

    assert error.code is ErrorCode.FORBIDDEN
    assert not list(shop.archive.iter_records("finding"))


def test_a_place_in_the_checkout_of_one_machine_is_found_in_that_of_another(tmp_path: Path) -> None:
    here = TriageShop.create(tmp_path / "here", "database")
    there = TriageShop.create(tmp_path / "there", "database", here.index_name)
    location = {"path": f"{here.root}/app/loader.py", "line": 8}
    finding = {"id": "1", "title": "Unsafe load", "locations": [location]}
    [record_id] = here.ingest_report("generic", [finding])["recordIds"]
    there.build_index()

    pack = there.call_tool("triage_context_pack", recordId=record_id)

    [located] = [
        evidence_query for evidence_query in pack["repoEvidence"]["queries"] if evidence_query["about"] == "location"
    ]
    assert located["query"] == "app/loader.py:8"
    assert [hit["name"] for hit in located["hits"]] == ["load"]
