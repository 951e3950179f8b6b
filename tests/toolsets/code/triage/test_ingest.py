"""Ingesting reports: once or repeatedly, complete or broken, small, huge or hostile."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import atomic_files
from cleats.toolsets.code.records.archive import RecordArchive
from cleats.toolsets.code.records.model import RECORD_ID_PATTERN, encode_json, extract_record_facts
from cleats.toolsets.code.triage import ingest
from cleats.toolsets.code.triage.ingest import Documents, NotAFinding, ingest_documents, parse_finding
from cleats.toolsets.code.triage.sources.registry import SOURCES_BY_NAME
from tests.support.requirements import requirement
from tests.support.triage import RECORD_STORES, REPORTS_FOLDER, TriageShop

GENERIC_FINDING = {"cve": "CVE-2022-0001", "packageName": "p", "severity": "high"}


@pytest.fixture(params=RECORD_STORES)
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> TriageShop:
    return TriageShop.create(tmp_path, request.param)


@requirement("b:tools:required:triage_ingest")
def test_a_report_becomes_records_that_are_listed_and_kept(shop: TriageShop) -> None:
    result = shop.ingest_report("dependabot", meta={"service": "shop", "env": "prod"})

    assert (result["total"], result["written"], result["errors"]) == (2, 2, 0)
    assert result["recordsDir"] == str(shop.archive.folder)
    for entry in result["records"]:
        document = json.loads(Path(entry["jsonPath"]).read_bytes())
        assert document["recordId"] == entry["recordId"]
        assert (document["service"], document["env"]) == ("shop", "prod")
        assert entry["file"] == f".cleats/records/{entry['recordId']}.md"
    assert "index" not in result


@pytest.mark.parametrize("report", sorted(report_file.name for report_file in REPORTS_FOLDER.iterdir()))
def test_the_same_report_again_changes_nothing(shop: TriageShop, report: str) -> None:
    source = next(name for name in SOURCES_BY_NAME if report.startswith(name))
    content = (REPORTS_FOLDER / report).read_bytes()
    first = shop.ingest_report(source, content)
    files = {path: path.read_bytes() for path in shop.archive.folder.rglob("*.json")}

    second = shop.ingest_report(source, content)

    assert first["created"] == len(first["recordIds"]) > 0
    assert (second["written"], second["unchanged"]) == (0, first["created"])
    assert second["recordIds"] == first["recordIds"]
    assert {path: path.read_bytes() for path in shop.archive.folder.rglob("*.json")} == files


def test_a_finding_that_changed_keeps_its_age(shop: TriageShop) -> None:
    [before] = shop.ingest_records("generic", [GENERIC_FINDING])

    result = shop.ingest_report("generic", [{**GENERIC_FINDING, "severity": "low"}])
    after = shop.find_record(before.record_id)

    assert (result["updated"], result["created"]) == (1, 0)
    assert after.created_at == before.created_at
    assert after.updated_at > before.updated_at
    assert after.vuln.severity == "low"


def test_a_finding_that_is_there_twice_is_taken_once(shop: TriageShop) -> None:
    twice = [GENERIC_FINDING, {**GENERIC_FINDING, "title": "again"}]
    result = shop.ingest_report("generic", twice)

    second = shop.ingest_report("generic", twice)

    assert (result["created"], result["duplicates"], result["total"]) == (1, 1, 2)
    assert (second["unchanged"], second["written"]) == (1, 0)


def test_bad_lines_and_findings_without_meaning_are_reported(shop: TriageShop) -> None:
    result = shop.ingest_report("generic")

    assert (result["created"], result["errors"]) == (2, 2)
    assert [error["index"] for error in result["errorDetails"]] == [2, 3]
    assert result["errorDetails"][0]["message"].startswith("line 3: ")


def test_many_errors_are_counted_and_the_first_are_told(shop: TriageShop) -> None:
    lines = b"\n".join([b'{"cve": "CVE-2022-0001"}', *[b"{"] * 300])

    result = shop.ingest_report("generic", lines)

    assert (result["created"], result["errors"], len(result["errorDetails"])) == (1, 300, 100)


def test_what_a_caller_says_counts_more_and_labels_are_kept(shop: TriageShop) -> None:
    meta = {
        "service": "till",
        "internetExposed": True,
        "publicEndpoint": "/pay",
        "compensatingControls": ["WAF"],
        "ticket": "SEC-1",
        "wave": 2,
        "audited": False,
    }

    [record] = shop.ingest_records("generic", [{**GENERIC_FINDING, "service": "shop"}], meta=meta)

    assert record.service == "till"
    assert record.exposure.internet_exposed
    assert record.exposure.compensating_controls == ["WAF"]
    assert record.labels == {"ticket": "SEC-1", "wave": "2", "audited": "false"}


BANDIT_REPORT = {"errors": [], "generated_at": "2026-11-16", "metrics": {}, "results": [{"line": 1}]}


@pytest.mark.parametrize(
    ("source", "content", "hint"),
    [
        ("sarif", BANDIT_REPORT, "bandit -f sarif"),
        ("osv", BANDIT_REPORT, "bandit -f sarif"),
        ("dependabot", BANDIT_REPORT, "bandit -f sarif"),
        ("sarif", {"SchemaVersion": 2, "Results": []}, "trivy --format sarif"),
        ("sarif", {"version": "2.1.0"}, "`version` and `runs`"),
        ("sarif", {"auditReportVersion": 2, "vulnerabilities": {}}, "`npm_audit`"),
        ("npm_audit", {"error": {"code": "ENOLOCK"}}, "an error of npm"),
        ("npm_audit", {"dependencies": []}, "`vulnerabilities` or `advisories`"),
        ("pip_audit", {"bomFormat": "CycloneDX", "dependencies": []}, "`cyclonedx`"),
        ("pip_audit", [{"name": "flask"}], "`dependencies`"),
        ("cyclonedx", {"components": [], "vulnerabilities": []}, "bomFormat"),
        ("cyclonedx", {"version": "2.1.0", "runs": []}, "`sarif`"),
        ("osv", {"dependencies": [{"name": "flask", "vulns": []}]}, "`pip_audit`"),
        ("osv", 7, "`results` or `vulns`"),
    ],
)
def test_a_report_of_another_format_is_refused_with_a_word_on_what_it_is(
    tmp_path: Path, source: str, content: Any, hint: str
) -> None:
    shop = TriageShop.create(tmp_path)
    shop.write_file("report.json", json.dumps(content))

    error = shop.expect_error("triage_ingest", source=source, inputPath="report.json")

    assert error.code is ErrorCode.INVALID_REQUEST
    assert f"is not in the format of {source}" in error.message
    assert hint in error.hint
    assert not list(shop.archive.iter_records("finding"))


@pytest.mark.parametrize(
    ("source", "content"),
    [
        ("sarif", {"version": "2.1.0", "runs": []}),
        ("sarif", {"runs": [{"tool": {"driver": {"name": "x"}}, "results": []}]}),
        ("cyclonedx", {"bomFormat": "CycloneDX", "specVersion": "1.5"}),
        ("osv", {"results": []}),
        ("osv", {}),
        ("pip_audit", {"dependencies": [], "fixes": []}),
        ("pip_audit", []),
        ("npm_audit", {"auditReportVersion": 2, "vulnerabilities": {}}),
    ],
)
def test_a_clean_report_is_taken_in_without_a_word(tmp_path: Path, source: str, content: Any) -> None:
    shop = TriageShop.create(tmp_path)
    shop.write_file("report.json", json.dumps(content))

    result = shop.ingest_report(source, content)
    warned = shop.list_warning_codes("triage_ingest", source=source, inputPath="report.json")

    assert (result["total"], result["errors"]) == (0, 0)
    assert not warned


def test_a_line_of_another_format_is_reported_among_those_that_fit(shop: TriageShop) -> None:
    lines = [{"id": "OSV-1", "modified": "2026"}, BANDIT_REPORT]

    result = shop.ingest_report("osv", b"\n".join(json.dumps(report_line).encode() for report_line in lines))

    assert (result["created"], result["errors"]) == (1, 1)
    assert result["errorDetails"] == [{"index": 1, "message": "line 2: it is not in the format of osv"}]


def test_a_report_without_signs_and_findings_is_warned_about(shop: TriageShop) -> None:
    shop.write_file("report.json", "[]")

    codes = shop.list_warning_codes("triage_ingest", source="dependabot", inputPath="report.json")

    assert codes == ["nothing_found"]


def test_a_report_may_be_named_from_the_root_and_be_written_by_powershell(shop: TriageShop) -> None:
    text = (REPORTS_FOLDER / "npm_audit.json").read_text()
    shop.write_file("reports/audit.json", b"\xff\xfe" + text.encode("utf-16-le"))

    result = shop.call_tool("triage_ingest", source="npm_audit", inputPath="reports/audit.json")

    assert result["created"] == 1


def test_a_file_that_is_not_there_is_not_found(shop: TriageShop) -> None:
    for missing in ("nowhere.json", "NOTES.md/inside.json"):
        error = shop.expect_error("triage_ingest", source="sarif", inputPath=missing)

        assert error.code is ErrorCode.NOT_FOUND
        assert str(shop.root) in error.hint


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("trivy", "NOTES.md"),
        ("sarif", "app"),
        ("sarif", "NOTES.md"),
        ("sarif", "pipe"),
        ("sarif", "empty.json"),
        ("sarif", "a\0b"),
        ("sarif", "x" * 5000),
        ("sarif", "loop"),
    ],
)
def test_what_is_no_report_is_refused(shop: TriageShop, source: str, path: str) -> None:
    os.mkfifo(shop.root / "pipe")
    (shop.root / "loop").symlink_to("loop")
    shop.write_file("empty.json", "")

    error = shop.expect_error("triage_ingest", source=source, inputPath=path)

    assert error.code is ErrorCode.INVALID_REQUEST
    assert error.hint


def test_a_file_that_is_too_long_is_refused(shop: TriageShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "MAX_FILE_BYTES", 10)

    error = shop.expect_error("triage_ingest", source="sarif", inputPath="NOTES.md")

    assert error.code is ErrorCode.INVALID_REQUEST
    assert "the maximum is 10" in error.message


def test_json_that_is_nested_too_deep_is_refused_or_reported(shop: TriageShop) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    shop.write_file("deep.json", deep)
    mixed = b'{"cve": "CVE-2022-0001"}\n{"cve": "CVE-2022-0002", "x": ' + deep + b"}\n"

    refusal = shop.expect_error("triage_ingest", source="generic", inputPath="deep.json")
    result = shop.ingest_report("generic", mixed)

    assert refusal.code is ErrorCode.INVALID_REQUEST
    assert (result["created"], result["errors"]) == (1, 1)


def test_texts_lists_and_originals_are_cut(shop: TriageShop) -> None:
    [record] = shop.ingest_records(
        "generic",
        [
            {
                "cve": "CVE-2022-0001",
                "title": "t" * 10_000,
                "description": "d" * 100_000,
                "references": [f"https://example.org/{n}" for n in range(1000)],
            }
        ],
    )

    assert len(record.vuln.title) == 500
    assert len(record.vuln.description) == 20_000
    assert len(record.vuln.references) == 50
    assert record.raw is None
    assert any("was not kept" in warning for warning in record.parse_warnings)


def test_ten_thousand_findings_are_taken_in_and_the_first_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = TriageShop.create(tmp_path)
    monkeypatch.setattr(atomic_files, "sync_path", lambda _path: None)
    lines = b"\n".join(b'{"cve": "CVE-2022-%05d", "packageName": "p"}' % number for number in range(10_000))

    result = shop.ingest_report("generic", lines)

    assert (result["created"], result["errors"]) == (10_000, 0)
    assert len(result["recordIds"]) == 500
    assert len(shop.archive.list_files()) == 10_000


def test_records_that_cannot_be_written_are_the_callers_affair(tmp_path: Path) -> None:
    shop = TriageShop.create(tmp_path)
    shop.data_dir.write_text("in the way")

    error = shop.expect_error("triage_ingest", source="sarif", inputPath=str(REPORTS_FOLDER / "sarif.json"))

    assert error.code is ErrorCode.INVALID_REQUEST
    assert "CLEATS_DATA_DIR" in error.hint


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, ErrorCode.UNAVAILABLE),
        (errno.EDQUOT, ErrorCode.UNAVAILABLE),
        (errno.EACCES, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_full_disk_may_have_room_later(tmp_path: Path, number: int, code: ErrorCode) -> None:
    archive = RecordArchive(tmp_path)

    with pytest.raises(ToolError) as caught, archive.open_writer():
        raise OSError(number, os.strerror(number))

    assert caught.value.code is code
    assert os.strerror(number) in caught.value.message


def test_what_lies_among_the_records_and_is_none_is_left_alone(shop: TriageShop) -> None:
    [record] = shop.ingest_records("generic", [GENERIC_FINDING])
    folder = shop.archive.record_path(record).parent
    (folder / "notes.txt").write_text("hello")
    (folder / f"{'0' * 40}.json").write_text("{}")
    (folder / f"{'1' * 40}.json").symlink_to(shop.archive.record_path(record))

    records = list(shop.archive.iter_records("finding"))

    assert [kept_record.record_id for kept_record in records] == [record.record_id]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=8) | st.sampled_from(sorted(
        {"runs", "results", "tool", "driver", "rules", "message", "text", "locations", "id",
         "vulnerabilities", "via", "advisories", "affects", "ref", "ratings", "components",
         "dependencies", "vulns", "packages", "package", "name", "affected", "ranges", "events",
         "severity", "cvss", "security_advisory", "resources", "vuln", "title", "references"}
    )), inner, max_size=5),
    max_leaves=30,
)  # fmt: skip


@given(source=st.sampled_from(sorted(SOURCES_BY_NAME)), document=JSON_VALUES)
@settings(max_examples=400, deadline=None)
def test_no_document_can_make_a_source_fail(source: str, document: Any) -> None:
    for thing in SOURCES_BY_NAME[source].iter_items(document):
        try:
            record = parse_finding(source, thing)
        except NotAFinding:
            continue

        assert RECORD_ID_PATTERN.fullmatch(record.record_id)
        assert parse_finding(source, thing) == record
        facts, page = extract_record_facts(encode_json(record))
        assert facts.chunks[0].end == len(page)


@given(items=st.lists(JSON_VALUES, max_size=6))
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_any_list_taken_in_twice_is_as_after_once(tmp_path_factory: pytest.TempPathFactory, items: list[Any]) -> None:
    archive = RecordArchive(tmp_path_factory.mktemp("records"))
    report = Documents([(0, items)])
    with archive.open_writer() as writer:
        first = ingest_documents(writer, "generic", report, {})
    files = {path: path.read_bytes() for path in archive.folder.rglob("*.json")}

    with archive.open_writer() as writer:
        twice = ingest_documents(writer, "generic", report, {})

    assert twice.records.keys() == first.records.keys()
    assert set(twice.records.values()) <= {"unchanged"}
    assert {path: path.read_bytes() for path in archive.folder.rglob("*.json")} == files
