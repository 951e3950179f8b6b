"""Findings and decisions on three machines that share a database, and nothing else."""

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
from cleats.settings import Settings
from cleats.toolsets.code.indexing.access import Indexes
from cleats.toolsets.code.triage.archive import Archive
from tests.postgres import away, database
from tests.triage_world import REPORTS, Shop
from tests.waiting import LIMIT, until
from tests.web import CLEATS, Web, serving

pytestmark = pytest.mark.timeout(400)  # servers and a worker, on whatever cores there are


def machine(folder: Path, url: str, shared: Path) -> dict[str, str]:
    """What is set on a machine: folders of its own, and what it shares."""
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
def reader(folder: Path, url: str, shared: Path) -> Iterator[Web]:
    environ = machine(folder, url, shared)
    with serving(*CLEATS, "code", home=folder, **environ) as web:
        yield web


@contextmanager
def worker(folder: Path, url: str, shared: Path, repo: Path) -> Iterator[None]:
    environ = {**os.environ, **machine(folder, url, shared)}
    words = ["worker", "--concurrency", "0", "--repo", str(repo)]
    argv = [sys.executable, "-m", "cleats", *words]
    process = subprocess.Popen(
        argv, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(LIMIT)


def files(web: Web, **given: Any) -> set[str]:
    """The records that a search finds."""
    reply = web.call("search", query="improper OR prototype", mode="records", **given)
    return {hit["file"] for hit in reply.result["records"]} if reply.status == 200 else set()


def test_what_one_server_learns_every_other_knows(tmp_path: Path) -> None:
    url, shared = database(), tmp_path / "shared"
    shop = Shop.at(tmp_path / "checkout")
    report = (REPORTS / "dependabot.json").read_text()

    with (
        reader(tmp_path / "left", url, shared) as left,
        reader(tmp_path / "right", url, shared) as right,
        worker(tmp_path / "maker", url, shared, shop.root),
    ):
        (tmp_path / "left/project/alerts.json").write_text(report)
        done = left.call(
            "triage_ingest",
            source="dependabot",
            inputPath="alerts.json",
            meta={"service": "shop"},
            buildIndex=True,
        )
        [first, second] = done.result["recordIds"]
        [warning] = done.json["_meta"]["warnings"]
        made = right.call("triage_decision", finding=first, status="accept", expires="2099-01-31")
        [past] = left.call("triage_context_pack", recordId=first).result["history"]
        assert (warning["code"], "index" in done.result) == ("index_elsewhere", False)
        assert (past["recordId"], past["expired"]) == (made.result["recordId"], False)

        wanted = [{f".cleats/records/{each}.md" for each in (first, second)}] * 2
        meta = {"recordType": "finding", "service": "shop"}
        until(lambda: [files(web, meta=meta) for web in (left, right)] == wanted)
        decided = {f".cleats/records/{made.result['recordId']}.md"}
        until(lambda: files(left, metaJson='{"recordType": "decision"}') == decided)
        pack = right.call("triage_context_pack", recordId=first).result
        assert "app/loader.py" in json.dumps(pack["repoEvidence"])

        def decide(number: int) -> str:
            web = (left, right)[number % 2]
            reply = web.call("triage_decision", finding=second, status="defer")
            record_id: str = reply.result["recordId"]
            return record_id

        with ThreadPoolExecutor(8) as pool:
            ids = set(pool.map(decide, range(16)))
        kept = {each.record_id for each in book(tmp_path / "third", url).records("decision")}
        assert len(ids) == 16
        assert kept == {*ids, made.result["recordId"]}

        with away(url):
            until(lambda: right.get("/ready").status == 503)
            refused = right.call("triage_decision", finding=first, status="fix")
            assert files(right, meta=meta) == wanted[0]
        until(lambda: right.get("/ready").status == 200)
        assert right.call("triage_decision", finding=first, status="fix").status == 200

    with psycopg.connect(url) as connection:
        jobs = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
    assert jobs == (None,), "nothing was asked to drive runs"
    assert (refused.status, refused.error["code"]) == (503, "UNAVAILABLE")
    assert refused.error["retryable"] is True


def book(folder: Path, url: str) -> Archive:
    """The records as yet another machine has them."""
    environ = machine(folder, url, folder)
    settings = Settings(
        cache_dir=Path(environ["CLEATS_CACHE_DIR"]),
        project_dir=Path(environ["CLEATS_PROJECT_DIR"]),
        database_url=url,
        index_name="shop",
    )
    indexes = Indexes(settings)
    return indexes.records(indexes.repository(None)).current()


def test_an_index_that_is_only_read_here_never_has_the_records_of_a_folder(tmp_path: Path) -> None:
    shop = Shop.at(tmp_path)
    shop.index_url = str(tmp_path / "shared")
    report = str(REPORTS / "dependabot.json")

    error = shop.refused("triage_ingest", source="dependabot", inputPath=report, buildIndex=True)

    assert error.code is ErrorCode.FORBIDDEN
    assert not list(shop.archive.records("finding"))


def test_a_place_in_the_checkout_of_one_machine_is_found_in_that_of_another(tmp_path: Path) -> None:
    here = Shop.at(tmp_path / "here", "database")
    there = Shop.at(tmp_path / "there", "database", here.index_name)
    place = {"path": f"{here.root}/app/loader.py", "line": 8}
    finding = {"id": "1", "title": "Unsafe load", "locations": [place]}
    [record_id] = here.ingest("generic", [finding])["recordIds"]
    there.build()

    pack = there.call("triage_context_pack", recordId=record_id)

    [located] = [each for each in pack["repoEvidence"]["queries"] if each["about"] == "location"]
    assert located["query"] == "app/loader.py:8"
    assert [hit["name"] for hit in located["hits"]] == ["load"]
