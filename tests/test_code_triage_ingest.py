"""Taking in reports: once or again, whole or broken, small, huge or hostile."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.triage import batch, documents
from cleats.toolsets.code.triage.archive import Archive
from cleats.toolsets.code.triage.documents import Documents
from cleats.toolsets.code.triage.ingest import NotAFinding, ingest, understood
from cleats.toolsets.code.triage.page import facts_of
from cleats.toolsets.code.triage.records import ID, encode
from cleats.toolsets.code.triage.sources.table import SOURCES
from tests.requirements import requirement
from tests.triage_world import KEEPERS, REPORTS, Shop

FINDING = {"cve": "CVE-2022-0001", "packageName": "p", "severity": "high"}


@pytest.fixture(params=KEEPERS)
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Shop:
    return Shop.at(tmp_path, request.param)


@requirement("b:tools:required:triage_ingest")
def test_a_report_becomes_records_that_are_listed_and_kept(shop: Shop) -> None:
    done = shop.ingest("dependabot", meta={"service": "shop", "env": "prod"})

    assert (done["total"], done["written"], done["errors"]) == (2, 2, 0)
    assert done["recordsDir"] == str(shop.archive.folder)
    for listed in done["records"]:
        kept = json.loads(Path(listed["jsonPath"]).read_bytes())
        assert kept["recordId"] == listed["recordId"]
        assert (kept["service"], kept["env"]) == ("shop", "prod")
        assert listed["file"] == f".cleats/records/{listed['recordId']}.md"
    assert "index" not in done


@pytest.mark.parametrize("report", sorted(each.name for each in REPORTS.iterdir()))
def test_the_same_report_again_changes_nothing(shop: Shop, report: str) -> None:
    source = next(name for name in SOURCES if report.startswith(name))
    content = (REPORTS / report).read_bytes()
    first = shop.ingest(source, content)
    files = {path: path.read_bytes() for path in shop.archive.folder.rglob("*.json")}

    again = shop.ingest(source, content)

    assert first["created"] == len(first["recordIds"]) > 0
    assert (again["written"], again["unchanged"]) == (0, first["created"])
    assert again["recordIds"] == first["recordIds"]
    assert {path: path.read_bytes() for path in shop.archive.folder.rglob("*.json")} == files


def test_a_finding_that_changed_keeps_its_age(shop: Shop) -> None:
    [before] = shop.records("generic", [FINDING])

    done = shop.ingest("generic", [{**FINDING, "severity": "low"}])
    after = shop.record(before.record_id)

    assert (done["updated"], done["created"]) == (1, 0)
    assert after.created_at == before.created_at
    assert after.updated_at > before.updated_at
    assert after.vuln.severity == "low"


def test_a_finding_that_is_there_twice_is_taken_once(shop: Shop) -> None:
    twice = [FINDING, {**FINDING, "title": "again"}]
    done = shop.ingest("generic", twice)

    again = shop.ingest("generic", twice)

    assert (done["created"], done["duplicates"], done["total"]) == (1, 1, 2)
    assert (again["unchanged"], again["written"]) == (1, 0)


def test_bad_lines_and_findings_without_meaning_are_reported(shop: Shop) -> None:
    done = shop.ingest("generic")

    assert (done["created"], done["errors"]) == (2, 2)
    assert [error["index"] for error in done["errorDetails"]] == [2, 3]
    assert done["errorDetails"][0]["message"].startswith("line 3: ")


def test_many_errors_are_counted_and_the_first_are_told(shop: Shop) -> None:
    lines = b"\n".join([b'{"cve": "CVE-2022-0001"}', *[b"{"] * 300])

    done = shop.ingest("generic", lines)

    assert (done["created"], done["errors"], len(done["errorDetails"])) == (1, 300, 100)


def test_what_a_caller_says_counts_more_and_labels_are_kept(shop: Shop) -> None:
    meta = {
        "service": "till",
        "internetExposed": True,
        "publicEndpoint": "/pay",
        "compensatingControls": ["WAF"],
        "ticket": "SEC-1",
        "wave": 2,
        "audited": False,
    }

    [found] = shop.records("generic", [{**FINDING, "service": "shop"}], meta=meta)

    assert found.service == "till"
    assert found.exposure.internet_exposed
    assert found.exposure.compensating_controls == ["WAF"]
    assert found.labels == {"ticket": "SEC-1", "wave": "2", "audited": "false"}


BANDIT = {"errors": [], "generated_at": "2026-11-16", "metrics": {}, "results": [{"line": 1}]}


@pytest.mark.parametrize(
    ("source", "content", "hint"),
    [
        ("sarif", BANDIT, "bandit -f sarif"),
        ("osv", BANDIT, "bandit -f sarif"),
        ("dependabot", BANDIT, "bandit -f sarif"),
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
    shop = Shop.at(tmp_path)
    shop.write("report.json", json.dumps(content))

    error = shop.refused("triage_ingest", source=source, inputPath="report.json")

    assert error.code is ErrorCode.INVALID_REQUEST
    assert f"is not what {source} writes" in error.message
    assert hint in error.hint
    assert not list(shop.archive.records("finding"))


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
def test_a_clean_report_is_taken_in_without_a_word(
    tmp_path: Path, source: str, content: Any
) -> None:
    shop = Shop.at(tmp_path)
    shop.write("report.json", json.dumps(content))

    done = shop.ingest(source, content)
    warned = shop.warned("triage_ingest", source=source, inputPath="report.json")

    assert (done["total"], done["errors"]) == (0, 0)
    assert not warned


def test_a_line_of_another_format_is_reported_among_those_that_fit(shop: Shop) -> None:
    lines = [{"id": "OSV-1", "modified": "2026"}, BANDIT]

    done = shop.ingest("osv", b"\n".join(json.dumps(each).encode() for each in lines))

    assert (done["created"], done["errors"]) == (1, 1)
    assert done["errorDetails"] == [{"index": 1, "message": "line 2: it is not what osv writes"}]


def test_a_report_without_signs_and_findings_is_warned_about(shop: Shop) -> None:
    shop.write("report.json", "[]")

    codes = shop.warned("triage_ingest", source="dependabot", inputPath="report.json")

    assert codes == ["nothing_found"]


def test_a_report_may_be_named_from_the_root_and_be_written_by_powershell(shop: Shop) -> None:
    text = (REPORTS / "npm_audit.json").read_text()
    shop.write("reports/audit.json", b"\xff\xfe" + text.encode("utf-16-le"))

    done = shop.call("triage_ingest", source="npm_audit", inputPath="reports/audit.json")

    assert done["created"] == 1


def test_a_file_that_is_not_there_is_not_found(shop: Shop) -> None:
    for missing in ("nowhere.json", "NOTES.md/inside.json"):
        error = shop.refused("triage_ingest", source="sarif", inputPath=missing)

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
def test_what_is_no_report_is_refused(shop: Shop, source: str, path: str) -> None:
    os.mkfifo(shop.root / "pipe")
    (shop.root / "loop").symlink_to("loop")
    shop.write("empty.json", "")

    error = shop.refused("triage_ingest", source=source, inputPath=path)

    assert error.code is ErrorCode.INVALID_REQUEST
    assert error.hint


def test_a_file_that_is_too_long_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST", 10)

    error = shop.refused("triage_ingest", source="sarif", inputPath="NOTES.md")

    assert error.code is ErrorCode.INVALID_REQUEST
    assert "10 are the most" in error.message


def test_json_that_is_nested_too_deep_is_refused_or_reported(shop: Shop) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    shop.write("deep.json", deep)
    mixed = b'{"cve": "CVE-2022-0001"}\n{"cve": "CVE-2022-0002", "x": ' + deep + b"}\n"

    alone = shop.refused("triage_ingest", source="generic", inputPath="deep.json")
    done = shop.ingest("generic", mixed)

    assert alone.code is ErrorCode.INVALID_REQUEST
    assert (done["created"], done["errors"]) == (1, 1)


def test_texts_lists_and_originals_are_cut(shop: Shop) -> None:
    [found] = shop.records(
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

    assert len(found.vuln.title) == 500
    assert len(found.vuln.description) == 20_000
    assert len(found.vuln.references) == 50
    assert found.raw is None
    assert any("was not kept" in warning for warning in found.parse_warnings)


def test_ten_thousand_findings_are_taken_in_and_the_first_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop.at(tmp_path)
    monkeypatch.setattr(batch, "sync", lambda _path: None)
    lines = b"\n".join(
        b'{"cve": "CVE-2022-%05d", "packageName": "p"}' % number for number in range(10_000)
    )

    done = shop.ingest("generic", lines)

    assert (done["created"], done["errors"]) == (10_000, 0)
    assert len(done["recordIds"]) == 500
    assert len(shop.archive.found()) == 10_000


def test_records_that_cannot_be_written_are_the_callers_affair(tmp_path: Path) -> None:
    shop = Shop.at(tmp_path)
    shop.data.write_text("in the way")

    error = shop.refused("triage_ingest", source="sarif", inputPath=str(REPORTS / "sarif.json"))

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
    archive = Archive(tmp_path)

    with pytest.raises(ToolError) as caught, archive.writing():
        raise OSError(number, os.strerror(number))

    assert caught.value.code is code
    assert os.strerror(number) in caught.value.message


def test_what_lies_among_the_records_and_is_none_is_left_alone(shop: Shop) -> None:
    [record] = shop.records("generic", [FINDING])
    folder = shop.archive.place(record).parent
    (folder / "notes.txt").write_text("hello")
    (folder / f"{'0' * 40}.json").write_text("{}")
    (folder / f"{'1' * 40}.json").symlink_to(shop.archive.place(record))

    found = list(shop.archive.records("finding"))

    assert [each.record_id for each in found] == [record.record_id]


JSON = st.recursive(
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


@given(source=st.sampled_from(sorted(SOURCES)), document=JSON)
@settings(max_examples=400, deadline=None)
def test_no_document_can_make_a_source_fail(source: str, document: Any) -> None:
    for thing in SOURCES[source].items(document):
        try:
            record = understood(source, thing)
        except NotAFinding:
            continue

        assert ID.fullmatch(record.record_id)
        assert understood(source, thing) == record
        facts, page = facts_of(encode(record))
        assert facts.chunks[0].end == len(page)


@given(items=st.lists(JSON, max_size=6))
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_any_list_taken_in_twice_is_as_after_once(
    tmp_path_factory: pytest.TempPathFactory, items: list[Any]
) -> None:
    archive = Archive(tmp_path_factory.mktemp("records"))
    report = Documents([(0, items)])
    with archive.writing() as writer:
        once = ingest(writer, "generic", report, {})
    files = {path: path.read_bytes() for path in archive.folder.rglob("*.json")}

    with archive.writing() as writer:
        twice = ingest(writer, "generic", report, {})

    assert twice.records.keys() == once.records.keys()
    assert set(twice.records.values()) <= {"unchanged"}
    assert {path: path.read_bytes() for path in archive.folder.rglob("*.json")} == files
