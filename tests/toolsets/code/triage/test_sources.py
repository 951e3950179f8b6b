"""Every kind of report, converted to records."""

import json
from pathlib import Path
from typing import get_args

import pytest

from cleats.toolsets.code import triage
from cleats.toolsets.code.records.model import SOURCE_NAMES, Cvss, DecisionStatus, Location, Package
from cleats.toolsets.code.triage.ingest import parse_finding
from cleats.toolsets.code.triage.sources.registry import SOURCES_BY_NAME
from cleats.toolsets.code.triage.values import compute_base_score, parse_cvss
from tests.support.triage import REPORTS_FOLDER, TriageShop


@pytest.fixture
def shop(tmp_path: Path) -> TriageShop:
    return TriageShop.create(tmp_path)


def test_an_alert_of_dependabot_names_advisory_package_and_manifest(shop: TriageShop) -> None:
    first, second = shop.ingest_records("dependabot")

    assert first.vuln.vuln_id == "GHSA-8q59-q68h-6hv4"
    assert first.vuln.cve == "CVE-2020-14343"
    assert first.vuln.cvss == Cvss(9.8, "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", "3.1")
    assert first.vuln.cwe == ["CWE-20"]
    assert first.package == Package(
        name="PyYAML",
        ecosystem="pypi",
        affected_range="< 5.4",
        fixed_version="5.4",
        manifest_path="requirements.txt",
    )
    assert (first.status, first.repo) == ("open", "acme/shop")
    assert (second.status, second.vuln.severity, second.vuln.cve) == ("fixed", "medium", "")
    assert second.vuln.cvss is None


def test_alerts_of_the_graphql_api_say_the_same() -> None:
    record = parse_finding(
        "dependabot",
        {
            "number": 7,
            "state": "OPEN",
            "vulnerableManifestPath": "go.mod",
            "securityAdvisory": {"ghsaId": "GHSA-1111-2222-3333", "summary": "Bad"},
            "securityVulnerability": {
                "severity": "MODERATE",
                "package": {"ecosystem": "GO", "name": "example.org/mod"},
                "vulnerableVersionRange": "< 2",
                "firstPatchedVersion": {"identifier": "2"},
            },
        },
    )

    assert (record.vuln.vuln_id, record.vuln.severity) == ("GHSA-1111-2222-3333", "medium")
    assert record.package == Package(
        name="example.org/mod",
        ecosystem="go",
        affected_range="< 2",
        fixed_version="2",
        manifest_path="go.mod",
    )


def test_a_finding_of_inspector_names_package_asset_and_account(shop: TriageShop) -> None:
    package, network = shop.ingest_records("aws_inspector")

    assert package.vuln.cve == "CVE-2023-38545"
    assert (package.vuln.severity, package.status) == ("high", "active")
    assert package.package.installed_version == "8.2.1-1.amzn2023"
    assert package.package.fixed_version == "0:8.3.0-1.amzn2023"
    assert package.asset.asset_id == "i-0123456789abcdef0"
    assert (package.asset.account, package.asset.region) == ("123456789012", "eu-west-1")
    assert package.asset.tags == {"Team": "payments"}
    assert network.exposure.internet_exposed
    assert network.exposure.public_endpoint == "port 22"


def test_the_title_of_a_result_has_no_gaps_that_its_message_fills() -> None:
    rule = {"id": "F401", "shortDescription": {"text": "`{name}` imported but unused"}}
    result = {"ruleId": "F401", "message": {"text": "`sys` imported but unused"}}
    run = {"tool": {"driver": {"name": "ruff", "rules": [rule]}}, "results": [result]}
    (item,) = SOURCES_BY_NAME["sarif"].iter_items({"version": "2.1.0", "runs": [run]})

    assert SOURCES_BY_NAME["sarif"].draft_finding(item).record.vuln.title == "`sys` imported but unused"


def test_a_result_in_sarif_brings_its_rule_its_place_and_its_weakness(shop: TriageShop) -> None:
    unsafe, suppressed, repeated = shop.ingest_records("sarif")

    assert (unsafe.vuln.vuln_id, unsafe.vuln.title) == ("B506", "Use of unsafe yaml load")
    assert (unsafe.vuln.severity, unsafe.vuln.cwe) == ("high", ["CWE-20"])
    assert unsafe.labels == {"tool": "Bandit"}
    assert unsafe.locations == [Location("app/settings loader.py", 5, 5, "return yaml.load(text)")]
    assert suppressed.vuln.description == "Use of assert in checks.py."
    assert (suppressed.status, suppressed.vuln.severity) == ("suppressed", "low")
    assert suppressed.locations == [Location("app/checks.py", 3, 3)]
    assert (repeated.status, repeated.vuln.severity) == ("open", "medium")


def test_what_bandit_really_writes_is_understood(shop: TriageShop) -> None:
    records = shop.ingest_records("sarif", (REPORTS_FOLDER / "sarif_bandit.json").read_bytes())

    assert [record.vuln.vuln_id for record in records] == ["B101", "B311", "B110"]
    assert all(record.vuln.severity == "low" for record in records)
    assert records[1].vuln.title.startswith("Standard pseudo-random generators are not suitable")
    assert records[1].locations[0].path.startswith("hypothesis/")
    assert records[1].locations[0].start_line > 1


def test_a_result_with_a_fingerprint_is_the_same_when_its_lines_move(shop: TriageShop) -> None:
    before, *_ = shop.ingest_records("sarif")
    text = (REPORTS_FOLDER / "sarif.json").read_bytes()
    moved = text.replace(b'"startLine": 5, "endLine": 5', b'"startLine": 50, "endLine": 50')

    after, *_ = shop.ingest_records("sarif", moved)

    assert after.record_id == before.record_id
    assert after.locations[0].start_line == 50


def test_two_results_that_say_the_same_of_one_file_are_two(shop: TriageShop) -> None:
    location = {
        "physicalLocation": {
            "artifactLocation": {"uri": "a.py"},
            "region": {"startLine": 1, "snippet": {"text": "eval(x)"}},
        }
    }
    result = {"ruleId": "R1", "message": {"text": "eval"}, "locations": [location]}
    run = {"tool": {"driver": {"name": "T"}}, "results": [result, result]}

    ingested = shop.ingest_report("sarif", {"version": "2.1.0", "runs": [run]})

    assert (ingested["total"], ingested["created"], ingested["duplicates"]) == (2, 2, 0)


def test_what_osv_scanner_prints_names_versions_and_computes_the_score(shop: TriageShop) -> None:
    [record] = shop.ingest_records("osv")

    assert (record.vuln.vuln_id, record.vuln.cve) == ("GHSA-462w-v97r-4m45", "CVE-2019-10906")
    assert record.vuln.cvss is not None
    assert record.vuln.cvss.score == 8.6
    assert record.package == Package(
        name="jinja2",
        ecosystem="pypi",
        installed_version="2.10",
        affected_range=">= 0, < 2.10.1",
        fixed_version="2.10.1",
        manifest_path="requirements.txt",
        purl="pkg:pypi/jinja2",
    )


def test_a_bare_entry_of_osv_is_a_finding_for_each_package(shop: TriageShop) -> None:
    entry = {
        "id": "GO-2024-1",
        "summary": "Two modules",
        "affected": [
            {"package": {"ecosystem": "Go", "name": "example.org/a"}},
            {"package": {"ecosystem": "Go", "name": "example.org/b"}},
        ],
    }

    records = shop.ingest_records("osv", entry)

    assert [record.package.name for record in records] == ["example.org/a", "example.org/b"]
    assert shop.ingest_records("osv", {"vulns": [entry]}) == records


def test_pip_audit_lists_what_a_dependency_has(shop: TriageShop) -> None:
    memory, service = shop.ingest_records("pip_audit")

    assert (memory.vuln.vuln_id, memory.vuln.cve) == ("PYSEC-2019-179", "CVE-2019-1010083")
    assert memory.package == Package(name="flask", ecosystem="pypi", installed_version="0.5", fixed_version="1.0")
    assert memory.parse_warnings == ["no severity"]
    assert service.package.fixed_version == "0.12.3"


def test_npm_audit_gives_each_advisory_once_and_not_who_depends_on_it(shop: TriageShop) -> None:
    [record] = shop.ingest_records("npm_audit", (REPORTS_FOLDER / "npm_audit.json").read_bytes())

    assert record.vuln.vuln_id == "GHSA-35jh-r3h4-6jhm"
    assert record.vuln.cwe == ["CWE-77", "CWE-94"]
    assert (record.package.affected_range, record.package.fixed_version) == ("<4.17.21", "4.17.21")


def test_npm_audit_of_npm_6_is_read_too(shop: TriageShop) -> None:
    [record] = shop.ingest_records("npm_audit", (REPORTS_FOLDER / "npm_audit_v1.json").read_bytes())

    assert (record.vuln.vuln_id, record.vuln.severity) == ("CVE-2019-10744", "medium")
    assert (record.package.name, record.package.installed_version) == ("lodash", "4.17.15")
    assert record.vuln.references == [
        "https://npmjs.com/advisories/1523",
        "https://hackerone.com/reports/712065",
    ]


def test_cyclonedx_is_a_finding_for_each_component_that_is_affected(shop: TriageShop) -> None:
    log4j, parser = shop.ingest_records("cyclonedx")

    assert log4j.package.name == "org.apache.logging.log4j:log4j-core"
    assert (log4j.package.ecosystem, log4j.package.installed_version) == ("maven", "2.14.1")
    assert (log4j.vuln.severity, log4j.vuln.cwe) == ("critical", ["CWE-20", "CWE-502"])
    assert (log4j.status, log4j.labels) == ("not_affected", {"justification": "code_not_reachable"})
    assert (parser.package.name, parser.package.ecosystem) == ("@acme/parser", "npm")


@pytest.mark.parametrize("source", ["generic", "manual"])
def test_our_own_words_may_be_flat_or_nested(shop: TriageShop, source: str) -> None:
    flat = {
        "cve": "CVE-2022-1",
        "vulnId": "X-1",
        "packageName": "p",
        "packageEcosystem": "pip",
        "version": "1",
        "severity": "Important",
        "assetId": "host",
        "publicEndpoint": "/login",
    }
    nested = {
        "vuln": {"vulnId": "X-1", "severity": "high"},
        "package": {"name": "p", "ecosystem": "pypi", "installedVersion": "1"},
        "asset": {"assetId": "host"},
        "exposure": {"publicEndpoint": "/login"},
    }

    one, other = shop.ingest_records(source, [flat, nested | {"id": "2"}])

    assert (one.source, one.vuln.severity) == (source, "high")
    for part in ("package", "asset", "exposure"):
        assert getattr(one, part) == getattr(other, part)


@pytest.mark.parametrize("wrapper", ["alerts", "findings", "records", "items", "whatever"])
def test_a_list_may_be_wrapped_in_an_object(shop: TriageShop, wrapper: str) -> None:
    records = shop.ingest_records("generic", {wrapper: [{"cve": "CVE-2022-0001"}, {"cve": "CVE-2022-0002"}]})

    assert [record.vuln.cve for record in records] == ["CVE-2022-0001", "CVE-2022-0002"]


@pytest.mark.parametrize(
    ("vector", "score"),
    [
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 9.8),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H", 10.0),
        ("CVSS:3.0/AV:L/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N", 1.8),
        ("CVSS:3.1/AV:N/AC:L/PR:L/UI:R/S:C/C:L/I:L/A:N", 5.4),
        ("CVSS:3.1/AV:P/AC:H/PR:H/UI:R/S:U/C:N/I:N/A:N", 0.0),
        ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N", None),
        ("CVSS:3.1/AV:N", None),
        ("nonsense", None),
    ],
)
def test_the_score_of_a_vector_is_that_of_the_specification(vector: str, score: float | None) -> None:
    assert compute_base_score(vector) == score


def test_a_score_out_of_range_is_not_believed() -> None:
    assert parse_cvss("", 99) is None
    assert parse_cvss("", -1) is None


def test_the_schemas_name_every_source_and_every_status() -> None:
    rows = json.loads((Path(triage.__file__).parent / "tools.json").read_bytes())["tools"]
    source = rows["triage_ingest"]["properties"]["source"]
    status = rows["triage_decision"]["properties"]["status"]

    assert tuple(source["enum"]) == SOURCE_NAMES
    assert set(SOURCE_NAMES) == set(SOURCES_BY_NAME)
    assert tuple(status["enum"]) == get_args(DecisionStatus)
