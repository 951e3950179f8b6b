"""Records in the index, searches for them, and the packs that are made from both."""

import json
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.indexing.freshness import look
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.output import payload
from cleats.toolsets.code.search.request import read
from cleats.toolsets.code.triage.evidence import Probe, probes
from cleats.toolsets.code.triage.imports import names
from cleats.toolsets.code.triage.records import (
    Exposure,
    Package,
    Record,
    Vulnerability,
)
from tests.index_world import content
from tests.requirements import requirement
from tests.triage_world import KEEPERS, Shop


@pytest.fixture(params=KEEPERS)
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Shop:
    return Shop.at(tmp_path, request.param)


def found(shop: Shop, query: str, **given: Any) -> list[dict[str, Any]]:
    """The records that a search finds."""
    with shop.lease() as lease:
        engine = Engine.open(lease.folder)
        answer = payload(engine, engine.search(read({"query": query, "mode": "records", **given})))
        engine.close()
    hits: list[dict[str, Any]] = answer["records"]
    return hits


def evidence(pack: dict[str, Any], about: str, mode: str) -> list[str]:
    """The names that the questions about something found."""
    return [
        hit["name"]
        for query in pack["repoEvidence"]["queries"]
        if query["about"] == about and query["mode"] == mode
        for hit in query["hits"]
    ]


def test_a_record_is_one_chunk_named_after_its_vulnerability(shop: Shop) -> None:
    [first, _] = shop.ingest("dependabot")["recordIds"]
    shop.build()

    [hit] = found(shop, "full_load", output="full")

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
def test_records_are_found_by_every_field(shop: Shop, meta: Any) -> None:
    shop.ingest("dependabot", meta={"service": "shop", "env": "prod", "ticket": "SEC-1"})
    shop.build()

    hits = found(shop, "improper OR prototype", meta=meta)
    same = found(shop, "improper OR prototype", metaJson=json.dumps(meta))

    assert [hit["name"] for hit in hits] == ["GHSA-8q59-q68h-6hv4"]
    assert same == hits


def test_an_index_without_records_in_its_modes_has_none(shop: Shop) -> None:
    shop.ingest("dependabot")

    done = shop.build(modes=("code",))

    assert "records" not in done.chunks


def test_an_update_with_records_says_what_a_full_build_says(shop: Shop) -> None:
    shop.build()
    ids = shop.ingest("dependabot")["recordIds"]
    shop.build()
    shop.call("triage_decision", finding=ids[0], status="accept")
    shop.ingest("sarif")
    shop.archive.finding_place(ids[1]).unlink()
    update = shop.build()
    updated = content(shop.lease())

    shop.build(incremental=False)

    assert (update.files.added, update.files.removed) == (4, 1)
    assert content(shop.lease()) == updated
    assert [hit["kind"] for hit in found(shop, "accept", meta="recordType=decision")] == ["record"]


def test_new_and_changed_records_make_an_index_stale(shop: Shop) -> None:
    shop.build()

    def fresh() -> Any:
        with shop.lease() as lease:
            return look(shop.root, lease, shop.options)[0]

    before = fresh()
    [first, _] = shop.ingest("dependabot")["recordIds"]
    added = fresh()
    shop.build()
    place = shop.archive.finding_place(first)
    place.write_bytes(place.read_bytes().replace(b'"critical"', b'"high"'))
    changed = fresh()

    assert not before.stale
    assert (added.added, changed.changed) == (2, 1)


def test_a_server_that_looked_before_sees_the_first_record_at_once(shop: Shop) -> None:
    shop.build()

    _, sight = look(shop.root, shop.lease(), shop.options)
    held = sight.holds(shop.root)
    shop.ingest("dependabot")

    assert held
    assert not sight.holds(shop.root)


def test_a_file_of_the_repository_at_the_place_of_records_is_only_a_file(shop: Shop) -> None:
    shop.write(".cleats/records/fake.md", '{"recordId": "x"}\n\nWords about unicorns.\n')
    shop.build()

    assert not found(shop, "unicorns")
    assert ".cleats/records/fake.md" in shop.paths()


def test_a_broken_record_is_said_to_be_and_ends_no_build(shop: Shop) -> None:
    [first, _] = shop.ingest("dependabot")["recordIds"]
    shop.archive.finding_place(first).write_text("{ unicorn")

    shop.build()

    [(path, problem)] = shop.read(lambda catalogue: catalogue.problems(9))
    assert path == f".cleats/records/{first}.md"
    assert "could not be understood" in problem


def test_ingest_builds_an_index_on_demand(shop: Shop) -> None:
    done = shop.ingest("dependabot", buildIndex=True, stubEmbeddings=True)

    assert done["index"]["published"]
    assert done["index"]["records"] == 2
    assert not shop.meta()["vectors"]
    assert "code" in shop.meta()["modes"]


@requirement("b:tools:required:triage_context_pack")
def test_a_pack_has_the_finding_the_decisions_and_what_the_code_says(shop: Shop) -> None:
    [first, _] = shop.ingest("dependabot")["recordIds"]
    decided = shop.call("triage_decision", finding=first, status="accept", expires="2020-01-01")
    shop.build()

    pack = shop.call("triage_context_pack", recordId=first)

    assert (pack["recordId"], pack["finding"]["recordId"]) == (first, first)
    assert "raw" not in pack["finding"]
    [past] = pack["history"]
    assert (past["recordId"], past["status"]) == (decided["recordId"], "accept")
    assert past["expired"]
    assert evidence(pack, "import", "code") == ["load", "loader"]
    assert evidence(pack, "vulnerability", "extracted-prose") == ["load"]
    assert evidence(pack, "vulnerability", "prose") == ["Notes"]
    assert evidence(pack, "manifest", "code")[0] == "requirements"
    assert "warnings" not in pack
    hits = [hit for query in pack["repoEvidence"]["queries"] for hit in query["hits"]]
    assert all(len(hit["snippet"]) <= 240 for hit in hits)


def test_a_pack_shows_the_code_that_a_scanner_pointed_at(shop: Shop) -> None:
    place = {"path": f"{shop.root}/app/loader.py", "line": 8}
    [record] = shop.records("generic", [{"id": "1", "title": "Unsafe load", "locations": [place]}])
    shop.build()

    pack = shop.call("triage_context_pack", recordId=record.record_id)

    first = pack["repoEvidence"]["queries"][0]
    assert (first["about"], first["query"]) == ("location", "app/loader.py:8")
    [hit] = first["hits"]
    assert (hit["name"], hit["snippet"]) == ("load", "    return yaml.load(text)")


def test_what_has_only_a_part_of_a_name_is_no_evidence(shop: Shop) -> None:
    [record] = shop.records("generic", [{"vulnId": "load324", "title": "Unsafe load"}])
    shop.build()

    pack = shop.call("triage_context_pack", recordId=record.record_id)

    assert evidence(pack, "title", "code")
    assert evidence(pack, "vulnerability", "code") == []


def test_meaning_counts_for_the_title_and_for_names_only_on_demand(shop: Shop) -> None:
    said = {"id": "1", "title": "configuration parser unsafe", "packageName": "PyYAML"}
    [record] = shop.records("generic", [said])
    shop.build()

    def meant(**given: Any) -> set[str]:
        pack = shop.call("triage_context_pack", recordId=record.record_id, **given)
        return {
            query["about"]
            for query in pack["repoEvidence"]["queries"]
            for hit in query["hits"]
            for part in hit["scoreBreakdown"]["parts"]
            if part["name"] == "meaning"
        }

    assert meant() == {"title"}
    assert {"title", "package"} <= meant(ann=True)
    assert meant(ann=False) == meant(stubEmbeddings=True) == set()


def test_a_pack_without_an_index_says_so_and_gives_the_rest(shop: Shop) -> None:
    [first, _] = shop.ingest("dependabot")["recordIds"]

    pack = shop.call("triage_context_pack", recordId=first)

    assert pack["repoEvidence"]["queries"] == []
    assert [warning["code"] for warning in pack["warnings"]] == ["no_index"]


def test_a_pack_is_written_where_it_may_be(shop: Shop) -> None:
    [first, second] = shop.ingest("dependabot")["recordIds"]

    inside = shop.call("triage_context_pack", recordId=first, outPath="packs/one.json")
    beside = shop.call("triage_context_pack", recordId=first, outPath=str(shop.data / "one.json"))
    again = shop.call("triage_context_pack", recordId=second, outPath="packs/one.json")

    written = json.loads((shop.root / "packs/one.json").read_bytes())
    assert inside["outPath"] == str(shop.root / "packs/one.json")
    assert json.loads((shop.data / "one.json").read_bytes()) == beside
    assert written == again


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
def test_a_pack_replaces_nothing_and_leaves_no_fence(
    shop: Shop, path: str, code: ErrorCode
) -> None:
    [first, _] = shop.ingest("dependabot")["recordIds"]
    shop.write("package.json", '{"name": "shop"}')
    (shop.root / "folder.json").mkdir()
    (shop.root / "link").symlink_to(shop.folder)
    (shop.root / "link.json").symlink_to(shop.folder / "outside.json")
    before = sorted(shop.folder.iterdir())

    error = shop.refused("triage_context_pack", recordId=first, outPath=path)

    assert error.code is code
    assert error.hint
    assert sorted(shop.folder.iterdir()) == before
    assert (shop.root / "package.json").read_text() == '{"name": "shop"}'


def test_what_is_asked_follows_from_the_finding() -> None:
    record = Record(
        vuln=Vulnerability(vuln_id="CVE-2022-0001", cve="CVE-2022-0001", title='A "b" AND (c'),
        package=Package(name="@acme/parser", ecosystem="npm", manifest_path="web/package.json"),
        exposure=Exposure(public_endpoint="https://shop.example/v1/login"),
    )

    asked = [(probe.why, probe.query, dict(probe.filters)) for probe in probes(record)]

    assert asked == [
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
    assert probes(Record()) == []
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
def test_code_imports_a_package_by_another_name(
    package: str, ecosystem: str, modules: list[str]
) -> None:
    assert names(package, ecosystem) == modules
