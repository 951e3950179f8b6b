"""Records in the index, searches for them, and context packs made from both."""

import json
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.index.freshness import check_generation
from cleats.toolsets.code.index.freshness_snapshot import SnapshotWatch
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.records.model import (
    Exposure,
    Package,
    TriageRecord,
    Vulnerability,
)
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from cleats.toolsets.code.triage.evidence import Probe, build_probes, list_import_names
from tests.support.indexes import read_catalogue_content
from tests.support.requirements import requirement
from tests.support.triage import RECORD_STORES, TriageShop


@pytest.fixture(params=RECORD_STORES)
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> TriageShop:
    return TriageShop.create(tmp_path, request.param)


def search_records(shop: TriageShop, query: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return the records that a search finds."""
    with shop.lease_current() as lease:
        engine = SearchEngine.open(lease.folder)
        answer = render_answer(
            engine, search_generation(engine, parse_request({"query": query, "mode": "records", **arguments}))
        )
        engine.close()
    hits: list[dict[str, Any]] = answer["records"]
    return hits


def list_evidence(pack: dict[str, Any], about: str, mode: str) -> list[str]:
    """Return the names that the queries about a subject found."""
    return [
        hit["name"]
        for query in pack["repoEvidence"]["queries"]
        if query["about"] == about and query["mode"] == mode
        for hit in query["hits"]
    ]


def test_a_record_is_one_chunk_named_after_its_vulnerability(shop: TriageShop) -> None:
    [first, _] = shop.ingest_report("dependabot")["recordIds"]
    shop.build_index()

    [hit] = search_records(shop, "full_load", output="full")

    assert (hit["kind"], hit["name"]) == ("record", "GHSA-8q59-q68h-6hv4")
    assert hit["file"] == f".cleats/records/{first}.md"
    assert hit["headline"] == "Improper Input Validation in PyYAML"
    assert hit["text"].startswith("# GHSA-8q59-q68h-6hv4: Improper Input Validation in PyYAML\n")
    assert hit["docmeta"]["fields"]["packageName"] == "PyYAML"


@pytest.mark.parametrize(
    "meta",
    [
        {"recordType": "finding", "cve": "CVE-2020-14343"},
        {"packageName": "PyYAML", "packageEcosystem": "pypi"},
        {"severity": "critical", "service": "shop", "env": "prod"},
        {"vulnId": "GHSA-8q59-q68h-6hv4", "source": "dependabot", "status": "open"},
        {"ticket": "SEC-1", "severity": "critical"},
    ],
)
def test_records_are_found_by_every_field(shop: TriageShop, meta: Any) -> None:
    shop.ingest_report("dependabot", meta={"service": "shop", "env": "prod", "ticket": "SEC-1"})
    shop.build_index()

    hits = search_records(shop, "improper OR prototype", meta=meta)
    same = search_records(shop, "improper OR prototype", metaJson=json.dumps(meta))

    assert [hit["name"] for hit in hits] == ["GHSA-8q59-q68h-6hv4"]
    assert same == hits


def test_an_index_without_records_in_its_modes_has_none(shop: TriageShop) -> None:
    shop.ingest_report("dependabot")

    report = shop.build_index(modes=("code",))

    assert "records" not in report.chunks


def test_an_update_with_records_says_what_a_full_build_says(shop: TriageShop) -> None:
    shop.build_index()
    ids = shop.ingest_report("dependabot")["recordIds"]
    shop.build_index()
    shop.call_tool("triage_decision", finding=ids[0], status="accept")
    shop.ingest_report("sarif")
    shop.archive.finding_path(ids[1]).unlink()
    update = shop.build_index()
    updated = read_catalogue_content(shop.lease_current())

    shop.build_index(incremental=False)

    assert (update.files.added, update.files.removed) == (4, 1)
    assert read_catalogue_content(shop.lease_current()) == updated
    assert [hit["kind"] for hit in search_records(shop, "accept", meta="recordType=decision")] == ["record"]


def test_new_and_changed_records_make_an_index_stale(shop: TriageShop) -> None:
    shop.build_index()

    def check_freshness() -> Any:
        with shop.lease_current() as lease:
            return check_generation(shop.root, lease, shop.options)[0]

    before = check_freshness()
    [first, _] = shop.ingest_report("dependabot")["recordIds"]
    added = check_freshness()
    shop.build_index()
    record_path = shop.archive.finding_path(first)
    record_path.write_bytes(record_path.read_bytes().replace(b'"critical"', b'"high"'))
    changed = check_freshness()

    assert not before.is_stale
    assert (added.added, changed.changed) == (2, 1)


def test_a_server_that_looked_before_sees_the_first_record_at_once(shop: TriageShop) -> None:
    shop.build_index()

    _, snapshot = check_generation(shop.root, shop.lease_current(), shop.options)
    watch = SnapshotWatch(snapshot)
    was_changed = watch.has_changed(shop.root)
    shop.ingest_report("dependabot")

    assert not was_changed
    assert watch.has_changed(shop.root)


def test_a_file_of_the_repository_at_the_place_of_records_is_only_a_file(shop: TriageShop) -> None:
    shop.write_file(".cleats/records/fake.md", '{"recordId": "x"}\n\nWords about unicorns.\n')
    shop.build_index()

    assert not search_records(shop, "unicorns")
    assert ".cleats/records/fake.md" in shop.list_paths()


def test_a_broken_record_is_said_to_be_and_ends_no_build(shop: TriageShop) -> None:
    [first, _] = shop.ingest_report("dependabot")["recordIds"]
    shop.archive.finding_path(first).write_text("{ unicorn")

    shop.build_index()

    [(path, problem)] = shop.query_catalogue(lambda catalogue: catalogue.list_problems(9))
    assert path == f".cleats/records/{first}.md"
    assert "could not be understood" in problem


def test_ingest_builds_an_index_on_demand(shop: TriageShop) -> None:
    result = shop.ingest_report("dependabot", buildIndex=True, stubEmbeddings=True)

    assert result["index"]["published"]
    assert result["index"]["records"] == 2
    assert not shop.read_meta()["vectors"]
    assert "code" in shop.read_meta()["modes"]


@requirement("b:tools:required:triage_context_pack")
def test_a_pack_has_the_finding_the_decisions_and_what_the_code_says(shop: TriageShop) -> None:
    [first, _] = shop.ingest_report("dependabot")["recordIds"]
    decided = shop.call_tool("triage_decision", finding=first, status="accept", expires="2020-01-01")
    shop.build_index()

    pack = shop.call_tool("triage_context_pack", recordId=first)

    assert (pack["recordId"], pack["finding"]["recordId"]) == (first, first)
    assert "raw" not in pack["finding"]
    [past] = pack["history"]
    assert (past["recordId"], past["status"]) == (decided["recordId"], "accept")
    assert past["expired"]
    assert list_evidence(pack, "import", "code") == ["load", "loader"]
    assert list_evidence(pack, "vulnerability", "extracted-prose") == ["load"]
    assert list_evidence(pack, "vulnerability", "prose") == ["Notes"]
    assert list_evidence(pack, "manifest", "code")[0] == "requirements"
    assert "warnings" not in pack
    hits = [hit for query in pack["repoEvidence"]["queries"] for hit in query["hits"]]
    assert all(len(hit["snippet"]) <= 240 for hit in hits)


def test_a_pack_shows_the_code_that_a_scanner_pointed_at(shop: TriageShop) -> None:
    location = {"path": f"{shop.root}/app/loader.py", "line": 8}
    [record] = shop.ingest_records("generic", [{"id": "1", "title": "Unsafe load", "locations": [location]}])
    shop.build_index()

    pack = shop.call_tool("triage_context_pack", recordId=record.record_id)

    first = pack["repoEvidence"]["queries"][0]
    assert (first["about"], first["query"]) == ("location", "app/loader.py:8")
    [hit] = first["hits"]
    assert (hit["name"], hit["snippet"]) == ("load", "    return yaml.load(text)")


def test_what_has_only_a_part_of_a_name_is_no_evidence(shop: TriageShop) -> None:
    [record] = shop.ingest_records("generic", [{"vulnId": "load324", "title": "Unsafe load"}])
    shop.build_index()

    pack = shop.call_tool("triage_context_pack", recordId=record.record_id)

    assert list_evidence(pack, "title", "code")
    assert list_evidence(pack, "vulnerability", "code") == []


def test_meaning_counts_for_the_title_and_for_names_only_on_demand(shop: TriageShop) -> None:
    finding = {"id": "1", "title": "configuration parser unsafe", "packageName": "PyYAML"}
    [record] = shop.ingest_records("generic", [finding])
    shop.build_index()

    def find_meaning_hits(**arguments: Any) -> set[str]:
        pack = shop.call_tool("triage_context_pack", recordId=record.record_id, **arguments)
        return {
            query["about"]
            for query in pack["repoEvidence"]["queries"]
            for hit in query["hits"]
            for part in hit["scoreBreakdown"]["parts"]
            if part["name"] == "meaning"
        }

    assert find_meaning_hits() == {"title"}
    assert {"title", "package"} <= find_meaning_hits(ann=True)
    assert find_meaning_hits(ann=False) == find_meaning_hits(stubEmbeddings=True) == set()


def test_a_pack_without_an_index_says_so_and_gives_the_rest(shop: TriageShop) -> None:
    [first, _] = shop.ingest_report("dependabot")["recordIds"]

    pack = shop.call_tool("triage_context_pack", recordId=first)

    assert pack["repoEvidence"]["queries"] == []
    assert [warning["code"] for warning in pack["warnings"]] == ["no_index"]


def test_a_pack_is_written_where_it_may_be(shop: TriageShop) -> None:
    [first, second] = shop.ingest_report("dependabot")["recordIds"]

    inside = shop.call_tool("triage_context_pack", recordId=first, outPath="packs/one.json")
    outside_pack = shop.call_tool("triage_context_pack", recordId=first, outPath=str(shop.data_dir / "one.json"))
    second_pack = shop.call_tool("triage_context_pack", recordId=second, outPath="packs/one.json")

    written_pack = json.loads((shop.root / "packs/one.json").read_bytes())
    assert inside["outPath"] == str(shop.root / "packs/one.json")
    assert json.loads((shop.data_dir / "one.json").read_bytes()) == outside_pack
    assert written_pack == second_pack


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../outside.json", ErrorCode.FORBIDDEN),
        ("/outside.json", ErrorCode.FORBIDDEN),
        ("link/outside.json", ErrorCode.FORBIDDEN),
        ("link.json", ErrorCode.FORBIDDEN),
        (".git/config.json", ErrorCode.FORBIDDEN),
        ("package.json", ErrorCode.FORBIDDEN),
        ("folder.json", ErrorCode.FORBIDDEN),
        ("app/loader.py", ErrorCode.INVALID_REQUEST),
        ("NOTES.md/one.json", ErrorCode.INVALID_REQUEST),
        ("a\0.json", ErrorCode.INVALID_REQUEST),
        ("x" * 300 + ".json", ErrorCode.INVALID_REQUEST),
        pytest.param("x/" * 500_000 + "y.json", ErrorCode.INVALID_REQUEST, id="an endless path"),
        (".", ErrorCode.FORBIDDEN),
    ],
)
def test_a_pack_replaces_nothing_and_leaves_no_fence(shop: TriageShop, path: str, code: ErrorCode) -> None:
    [first, _] = shop.ingest_report("dependabot")["recordIds"]
    shop.write_file("package.json", '{"name": "shop"}')
    (shop.root / "folder.json").mkdir()
    (shop.root / "link").symlink_to(shop.folder)
    (shop.root / "link.json").symlink_to(shop.folder / "outside.json")
    before = sorted(shop.folder.iterdir())

    error = shop.expect_error("triage_context_pack", recordId=first, outPath=path)

    assert error.code is code
    assert error.hint
    assert sorted(shop.folder.iterdir()) == before
    assert (shop.root / "package.json").read_text() == '{"name": "shop"}'


def test_what_is_asked_follows_from_the_finding() -> None:
    record = TriageRecord(
        vuln=Vulnerability(vuln_id="CVE-2022-0001", cve="CVE-2022-0001", title='A "b" AND (c'),
        package=Package(name="@acme/parser", ecosystem="npm", manifest_path="web/package.json"),
        exposure=Exposure(public_endpoint="https://shop.example/v1/login"),
    )

    probe_rows = [(probe.about, probe.query, dict(probe.filters)) for probe in build_probes(record)]

    assert probe_rows == [
        ("vulnerability", '"CVE-2022-0001"', {}),
        ("package", '"@acme/parser"', {}),
        ("package", '"parser"', {}),
        ("import", '"@acme/parser"', {"import": "@acme/parser"}),
        ("manifest", '"parser"', {"file": "package.json"}),
        ("manifest", '"package.json"', {}),
        ("endpoint", '"v1/login"', {}),
        ("title", "A b and c", {}),
    ]


def test_an_empty_finding_asks_nothing_and_a_quote_in_a_name_is_no_operator() -> None:
    assert build_probes(TriageRecord()) == []
    assert Probe("package", 'a"b\\').query == '"a\\"b\\\\"'


@pytest.mark.parametrize(
    ("package", "ecosystem", "modules"),
    [
        ("PyYAML", "pypi", ["yaml"]),
        ("scikit_learn", "pypi", ["sklearn"]),
        ("typing-extensions", "pypi", ["typing_extensions"]),
        ("serde-json", "cargo", ["serde_json"]),
        ("org.slf4j:slf4j-api", "maven", ["org.slf4j"]),
        ("@acme/parser", "npm", ["@acme/parser"]),
        ("", "npm", []),
    ],
)
def test_code_imports_a_package_by_another_name(package: str, ecosystem: str, modules: list[str]) -> None:
    assert list_import_names(package, ecosystem) == modules
