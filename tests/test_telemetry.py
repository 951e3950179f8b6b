"""One span and one line for every call, and never a call that waits for them."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome
from cleats.runtime import journal as journals
from cleats.runtime import spans
from cleats.runtime.call import Call
from cleats.runtime.journal import Journal
from cleats.runtime.spans import SpanFile
from cleats.runtime.telemetry import LocalTracer, Telemetry, plain
from tests.peer import LIMIT, started
from tests.span_world import span_collector
from tests.waiting import until


def record(call: Call, outcome: Outcome) -> tuple[dict[str, object], str]:
    """What one call leaves: its span and its log line."""
    lines: dict[object, bytes] = {}
    sink = lines.__setitem__
    tracer = LocalTracer(lambda _batch: None)
    telemetry = Telemetry(tracer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journals.JOURNAL, "line", sink)
        telemetry.end(telemetry.begin(call), call, outcome)
    log = lines.pop(journals.stderr)
    [span] = lines.values()
    return json.loads(span), log.decode()


def test_a_call_leaves_a_span_and_a_line_with_the_same_ids() -> None:
    span, line = record(Call(id="7", tool="search", arguments={}, surface="mcp"), Done({}))

    assert span["name"] == "call search"
    assert span["attributes"] == {
        "cleats.tool": "search",
        "cleats.surface": "mcp",
        "cleats.outcome": "Done",
        "cleats.request_id": "7",
    }
    assert line.startswith("call.end surface=mcp id=7 tool=search outcome=Done ms=")
    assert line.endswith(f"trace={span['trace_id']} span={span['span_id']}\n")


def test_a_failure_is_marked_with_its_code() -> None:
    failed = Failed(ToolError(ErrorCode.NO_INDEX, "no"))

    span, line = record(Call(tool="search", arguments={}), failed)

    assert span["status"] == "ERROR"
    assert "code=NO_INDEX" in line


def test_what_a_tool_notes_is_on_its_span_and_in_its_line() -> None:
    call = Call(tool="launch_validate", arguments={})
    call.note(run_id="r_1 2")

    span, line = record(call, Done({}))

    assert span["attributes"]["cleats.run_id"] == "r_1 2"  # type: ignore[index]
    assert " run_id='r_1 2' ms=" in line


def test_the_callers_trace_is_continued() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    span, _ = record(Call(tool="search", arguments={}, traceparent=parent), Cancelled())

    assert span["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    assert span["parent_id"] == "b7ad6b7169203331"


@given(st.text())
def test_a_value_from_outside_cannot_start_a_line_of_its_own(value: str) -> None:
    assert "\n" not in plain(value)
    assert plain(value).isprintable()


def test_a_span_file_starts_over_at_its_cap_and_old_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "CAP", 100)
    for number in range(30):
        (tmp_path / f"spans-{number}.ndjson").write_text("old")
    file = SpanFile(tmp_path)
    for _ in range(5):
        file(b"x" * 60 + b"\n")

    own = tmp_path / f"spans-{os.getpid()}.ndjson"
    assert own.stat().st_size == 61
    assert own.with_suffix(".old").exists()
    assert len(list(tmp_path.iterdir())) <= spans.KEPT + 1


def test_an_old_span_file_that_is_gone_or_cannot_be_removed_costs_no_span(tmp_path: Path) -> None:
    (tmp_path / "spans-1.ndjson").symlink_to(tmp_path / "gone")
    for number in range(2, spans.KEPT + 5):
        (tmp_path / f"spans-{number}.ndjson").mkdir()

    SpanFile(tmp_path)(b"{}\n")

    assert (tmp_path / f"spans-{os.getpid()}.ndjson").read_bytes() == b"{}\n"


def test_a_reader_that_never_reads_costs_lines_and_not_time() -> None:
    stuck = threading.Event()
    journal = Journal()

    def outlet(_batch: bytes) -> None:
        stuck.wait(30)

    for _ in range(journals.BACKLOG * 3):
        journal.line(outlet, b"x\n")

    assert journal.dropped > 0
    stuck.set()


def test_the_last_lines_are_written_where_no_thread_can_be_started_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refused)
    journal, written = Journal(), list[bytes]()

    journal.line(written.append, b"one\n")
    journal.line(written.append, b"two\n")
    journal.close()

    assert b"".join(written) == b"one\ntwo\n"


def test_the_last_lines_are_waited_for_while_somebody_could_take_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal, written, disk = Journal(), list[bytes](), threading.Event()

    def slow(batch: bytes) -> None:
        disk.wait(LIMIT)
        written.append(batch)

    def asked() -> bool:
        disk.set()
        return True

    monkeypatch.setattr(journals, "PARTING", 0.01)
    monkeypatch.setattr(journals, "LAST_WAIT", LIMIT)
    monkeypatch.setattr(journals, "takes_more", asked)
    journal.line(slow, b"one\n")
    journal.close()

    assert written == [b"one\n"]


UNREAD = """
from cleats.runtime import journal

journal.LAST_WAIT = 3600
for _ in range(100):
    journal.JOURNAL.line(journal.stderr, b"x" * 4095 + b"\\n")
"""


def test_a_process_whose_last_lines_nobody_reads_ends_all_the_same() -> None:
    process = subprocess.Popen([sys.executable, "-c", UNREAD], stderr=subprocess.PIPE)
    try:
        assert process.wait(LIMIT) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.anyio
async def test_a_line_that_waits_for_company_has_its_thread_already() -> None:
    journal, written = Journal(), list[bytes]()
    journal.line(written.append, b"one\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "Thread", None)
        journal.close()

    assert written == [b"one\n"]


def test_a_server_keeps_its_spans_in_its_own_folder(tmp_path: Path) -> None:
    with started(home=tmp_path) as peer:
        peer.call(1, "echo", text="x")
        peer.answer(1)
        peer.end_input()
        peer.wait()

    [file] = (tmp_path / ".local/share/cleats/telemetry").iterdir()
    [span] = [json.loads(line) for line in file.read_text().splitlines()]
    assert span["attributes"]["cleats.tool"] == "echo"


def test_with_telemetry_off_nothing_is_written(tmp_path: Path) -> None:
    with started(home=tmp_path, CLEATS_TELEMETRY="off") as peer:
        peer.call(1, "echo", text="x")
        peer.answer(1)
        peer.end_input()
        peer.wait()

    assert not (tmp_path / ".local").exists()


def test_a_collector_that_is_not_there_neither_fails_nor_delays_a_call(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9/v1/traces"
    with started(home=tmp_path, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=nowhere) as peer:
        for number in range(20):
            peer.call(number, "echo", text="x")

            assert peer.answer(number)["result"]["isError"] is False


def test_a_collector_gets_the_last_spans_and_holds_up_nobody_beyond_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_the_end: list[object] = []
    monkeypatch.setattr("atexit.register", at_the_end.append)
    with span_collector() as collector:
        exported = spans._otlp.__wrapped__(collector.url)
        assert exported is not None
        exported.start_span("last").end()

        [parting] = [each for each in at_the_end if isinstance(each, spans.Parting)]
        parting()

        until(lambda: [each.name for each in collector.spans] == ["last"])
    assert not [each for each in at_the_end if getattr(each, "__name__", "") == "shutdown"]


def test_a_process_does_not_wait_for_ever_for_what_ends_with_it() -> None:
    never = threading.Event()

    spans.Parting(never.wait, 0.01)()  # comes back all the same

    assert not never.is_set()
    never.set()
