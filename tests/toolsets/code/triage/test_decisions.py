"""Decisions: what is recorded, when they expire, and to which findings they apply."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.records.model import Decision
from cleats.toolsets.code.triage.decisions import find_related_decisions, is_expired, parse_expiry
from tests.support.requirements import requirement
from tests.support.triage import RECORD_STORES, TriageShop

JANUARY_NOON = datetime(2027, 1, 31, 12, tzinfo=UTC)


@pytest.fixture(params=RECORD_STORES)
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> TriageShop:
    return TriageShop.create(tmp_path, request.param)


def ingest_finding(shop: TriageShop, **facts: Any) -> str:
    """Ingest a finding and return its id."""
    fields = {"cve": "CVE-2022-0001", "packageName": "yaml", "service": "shop", **facts}
    [record] = shop.ingest_records("generic", [fields])
    return record.record_id


@requirement("b:tools:required:triage_decision")
def test_a_decision_is_a_record_with_what_the_finding_is_about(shop: TriageShop) -> None:
    about = ingest_finding(shop)

    decision = shop.call_tool(
        "triage_decision",
        finding=about,
        status="not_affected",
        justification="Only our own files are read.",
        codes=["code_not_reachable"],
        evidence=["app/loader.py:7"],
        reviewer="Ann",
        expires="2099-12-31",
        meta={"env": "prod"},
    )

    document = json.loads(Path(decision["jsonPath"]).read_bytes())
    assert (decision["findingId"], decision["status"], decision["expired"]) == (about, "not_affected", False)
    assert document["recordType"] == "decision"
    assert (document["vuln"]["cve"], document["package"]["name"]) == ("CVE-2022-0001", "yaml")
    assert (document["service"], document["env"]) == ("shop", "prod")
    assert document["decision"] == {
        "findingRecordId": about,
        "status": "not_affected",
        "justification": "Only our own files are read.",
        "justificationCodes": ["code_not_reachable"],
        "reviewer": "Ann",
        "expiresAt": "2099-12-31",
        "evidenceRefs": ["app/loader.py:7"],
    }


def test_the_same_decision_twice_is_two_and_the_finding_stays_as_it_was(shop: TriageShop) -> None:
    about = ingest_finding(shop)
    before = shop.find_record(about)

    first = shop.call_tool("triage_decision", finding=about, status="fix")
    second = shop.call_tool("triage_decision", finding=about.upper(), status="fix")

    assert first["recordId"] != second["recordId"]
    assert shop.find_record(about) == before


@pytest.mark.parametrize("given_id", ["../../etc/passwd", "a/b", "a\\b", "..", " ", "a\0b", "findings/x.json"])
def test_an_id_that_is_a_path_is_refused(shop: TriageShop, given_id: str) -> None:
    for tool, argument in (("triage_decision", "finding"), ("triage_context_pack", "recordId")):
        status = {"status": "fix"} if argument == "finding" else {}
        error = shop.expect_error(tool, **{argument: given_id}, **status)

        assert error.code is ErrorCode.INVALID_REQUEST
        assert error.hint


def test_an_unknown_finding_is_not_found_and_near_ones_are_named(shop: TriageShop) -> None:
    about = ingest_finding(shop)

    for wrong in (about[:10], about[:-1] + "x", "cve-2022-0001", "yaml"):
        error = shop.expect_error("triage_decision", finding=wrong, status="fix")

        assert error.code is ErrorCode.NOT_FOUND
        assert error.details == {"near": [about]}
        assert about in error.hint
    nothing = shop.expect_error("triage_decision", finding="zzzz", status="fix")
    assert nothing.code is ErrorCode.NOT_FOUND
    assert "triage_ingest" in nothing.hint


def test_a_decision_about_a_decision_is_refused(shop: TriageShop) -> None:
    about = ingest_finding(shop)
    decision = shop.call_tool("triage_decision", finding=about, status="fix")

    error = shop.expect_error("triage_decision", finding=decision["recordId"], status="fix")

    assert error.code is ErrorCode.INVALID_REQUEST
    assert about in error.hint


@pytest.mark.parametrize(
    "wrong",
    ["tomorrow", "2027-13-01", "2027-02-30", "31.01.2027", "2027", "0000-00-00", "2027-W05"],
)
def test_an_expiry_that_is_no_date_is_refused(shop: TriageShop, wrong: str) -> None:
    about = ingest_finding(shop)

    error = shop.expect_error("triage_decision", finding=about, status="defer", expires=wrong)

    assert error.code is ErrorCode.INVALID_REQUEST
    assert error.details[0]["instancePath"] == "/expires"
    assert not list(shop.archive.iter_records("decision"))


def test_a_status_that_is_none_is_refused(shop: TriageShop) -> None:
    error = shop.expect_error("triage_decision", finding=ingest_finding(shop), status="ignore")

    assert error.code is ErrorCode.INVALID_REQUEST


def test_a_decision_that_is_over_already_is_warned_about(shop: TriageShop) -> None:
    codes = shop.list_warning_codes(
        "triage_decision", finding=ingest_finding(shop), status="accept", expires="2020-01-01"
    )

    assert codes == ["decision_expired"]


@pytest.mark.parametrize(
    ("until", "over"),
    [
        ("", False),
        ("2027-01-30", True),
        ("2027-01-31", False),
        ("2027-01-31T11:59:59Z", True),
        ("2027-01-31T12:00:00Z", True),
        ("2027-01-31T12:00:01Z", False),
        ("2027-01-31T14:00:01+02:00", False),
    ],
)
def test_a_decision_holds_through_its_day_or_until_its_moment(until: str, over: bool) -> None:
    decision = Decision("f" * 40, "accept", expires_at=parse_expiry(until) if until else "")

    assert is_expired(decision, JANUARY_NOON) is over


@given(text=st.text(max_size=30) | st.from_regex(r"\d{4}-\d\d-\d\d(T\d\d:\d\d)?", fullmatch=True))
def test_what_was_read_as_an_expiry_is_read_again(text: str) -> None:
    try:
        read = parse_expiry(text)
    except ToolError:
        return

    assert parse_expiry(read) == read
    assert re.fullmatch(r"\d{4}-\d\d-\d\d(T.*Z)?", read)
    assert is_expired(Decision("f" * 40, "fix", expires_at=read), JANUARY_NOON) in (True, False)


def test_history_has_the_nearest_decisions_first_then_the_newest(shop: TriageShop) -> None:
    about = ingest_finding(shop, manifestPath="a.txt")
    same = ingest_finding(shop, id="1", packageName="c")
    package = ingest_finding(shop, id="2", cve="CVE-2022-0008")
    manifest = ingest_finding(shop, cve="CVE-2022-0009", packageName="b", manifestPath="a.txt")
    unrelated = ingest_finding(shop, id="3", cve="CVE-2022-0007", packageName="d")
    for item in (about, about, same, package, manifest, unrelated):
        shop.call_tool("triage_decision", finding=item, status="defer")

    decisions = find_related_decisions(shop.archive, shop.find_record(about), JANUARY_NOON)

    assert [item["relation"] for item in decisions] == [
        "finding",
        "finding",
        "vulnerability",
        "package",
        "manifest",
    ]
    assert decisions[0]["decidedAt"] > decisions[1]["decidedAt"]


def test_history_has_five_decisions_at_most(shop: TriageShop) -> None:
    about = ingest_finding(shop)
    for _ in range(6):
        shop.call_tool("triage_decision", finding=about, status="defer")

    assert len(find_related_decisions(shop.archive, shop.find_record(about), JANUARY_NOON)) == 5
