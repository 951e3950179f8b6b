"""Decisions: what is recorded, when they end, and for which findings they count."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.triage.decisions import expired, expiry, history
from cleats.toolsets.code.triage.records import Decision
from tests.requirements import requirement
from tests.triage_world import KEEPERS, Shop

NOON = datetime(2027, 1, 31, 12, tzinfo=UTC)


@pytest.fixture(params=KEEPERS)
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Shop:
    return Shop.at(tmp_path, request.param)


def finding(shop: Shop, **facts: Any) -> str:
    """The id of a finding that was taken in."""
    said = {"cve": "CVE-2022-0001", "packageName": "yaml", "service": "shop", **facts}
    [record] = shop.records("generic", [said])
    return record.record_id


@requirement("b:tools:required:triage_decision")
def test_a_decision_is_a_record_with_what_the_finding_is_about(shop: Shop) -> None:
    about = finding(shop)

    made = shop.call(
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

    kept = json.loads(Path(made["jsonPath"]).read_bytes())
    assert (made["findingId"], made["status"], made["expired"]) == (about, "not_affected", False)
    assert kept["recordType"] == "decision"
    assert (kept["vuln"]["cve"], kept["package"]["name"]) == ("CVE-2022-0001", "yaml")
    assert (kept["service"], kept["env"]) == ("shop", "prod")
    assert kept["decision"] == {
        "findingRecordId": about,
        "status": "not_affected",
        "justification": "Only our own files are read.",
        "justificationCodes": ["code_not_reachable"],
        "reviewer": "Ann",
        "expiresAt": "2099-12-31",
        "evidenceRefs": ["app/loader.py:7"],
    }


def test_the_same_decision_twice_is_two_and_the_finding_stays_as_it_was(shop: Shop) -> None:
    about = finding(shop)
    before = shop.record(about)

    first = shop.call("triage_decision", finding=about, status="fix")
    second = shop.call("triage_decision", finding=about.upper(), status="fix")

    assert first["recordId"] != second["recordId"]
    assert shop.record(about) == before


@pytest.mark.parametrize(
    "given_id", ["../../etc/passwd", "a/b", "a\\b", "..", " ", "a\0b", "findings/x.json"]
)
def test_an_id_that_is_a_path_is_refused(shop: Shop, given_id: str) -> None:
    for tool, argument in (("triage_decision", "finding"), ("triage_context_pack", "recordId")):
        status = {"status": "fix"} if argument == "finding" else {}
        error = shop.refused(tool, **{argument: given_id}, **status)

        assert error.code is ErrorCode.INVALID_REQUEST
        assert error.hint


def test_an_unknown_finding_is_not_found_and_near_ones_are_named(shop: Shop) -> None:
    about = finding(shop)

    for wrong in (about[:10], about[:-1] + "x", "cve-2022-0001", "yaml"):
        error = shop.refused("triage_decision", finding=wrong, status="fix")

        assert error.code is ErrorCode.NOT_FOUND
        assert error.details == {"near": [about]}
        assert about in error.hint
    nothing = shop.refused("triage_decision", finding="zzzz", status="fix")
    assert nothing.code is ErrorCode.NOT_FOUND
    assert "triage_ingest" in nothing.hint


def test_a_decision_about_a_decision_is_refused(shop: Shop) -> None:
    about = finding(shop)
    made = shop.call("triage_decision", finding=about, status="fix")

    error = shop.refused("triage_decision", finding=made["recordId"], status="fix")

    assert error.code is ErrorCode.INVALID_REQUEST
    assert about in error.hint


@pytest.mark.parametrize(
    "wrong",
    ["tomorrow", "2027-13-01", "2027-02-30", "31.01.2027", "2027", "0000-00-00", "2027-W05"],
)
def test_an_expiry_that_is_no_date_is_refused(shop: Shop, wrong: str) -> None:
    about = finding(shop)

    error = shop.refused("triage_decision", finding=about, status="defer", expires=wrong)

    assert error.code is ErrorCode.INVALID_REQUEST
    assert error.details[0]["instancePath"] == "/expires"
    assert not list(shop.archive.records("decision"))


def test_a_status_that_is_none_is_refused(shop: Shop) -> None:
    error = shop.refused("triage_decision", finding=finding(shop), status="ignore")

    assert error.code is ErrorCode.INVALID_REQUEST


def test_a_decision_that_is_over_already_is_warned_about(shop: Shop) -> None:
    codes = shop.warned(
        "triage_decision", finding=finding(shop), status="accept", expires="2020-01-01"
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
    decision = Decision("f" * 40, "accept", expires_at=expiry(until) if until else "")

    assert expired(decision, NOON) is over


@given(text=st.text(max_size=30) | st.from_regex(r"\d{4}-\d\d-\d\d(T\d\d:\d\d)?", fullmatch=True))
def test_what_was_read_as_an_expiry_is_read_again(text: str) -> None:
    try:
        read = expiry(text)
    except ToolError:
        return

    assert expiry(read) == read
    assert re.fullmatch(r"\d{4}-\d\d-\d\d(T.*Z)?", read)
    assert expired(Decision("f" * 40, "fix", expires_at=read), NOON) in (True, False)


def test_history_has_the_nearest_decisions_first_then_the_newest(shop: Shop) -> None:
    about = finding(shop, manifestPath="a.txt")
    same = finding(shop, id="1", packageName="c")
    package = finding(shop, id="2", cve="CVE-2022-0008")
    manifest = finding(shop, cve="CVE-2022-0009", packageName="b", manifestPath="a.txt")
    unrelated = finding(shop, id="3", cve="CVE-2022-0007", packageName="d")
    for each in (about, about, same, package, manifest, unrelated):
        shop.call("triage_decision", finding=each, status="defer")

    found = history(shop.archive, shop.record(about), NOON)

    assert [each["relation"] for each in found] == [
        "finding",
        "finding",
        "vulnerability",
        "package",
        "manifest",
    ]
    assert found[0]["decidedAt"] > found[1]["decidedAt"]


def test_history_has_five_decisions_at_most(shop: Shop) -> None:
    about = finding(shop)
    for _ in range(6):
        shop.call("triage_decision", finding=about, status="defer")

    assert len(history(shop.archive, shop.record(about), NOON)) == 5
