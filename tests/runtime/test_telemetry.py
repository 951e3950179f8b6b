"""Tests of telemetry: one span and one log line for every call, and no call waits for them."""

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
from cleats.runtime import background_writer as journals
from cleats.runtime import spans
from cleats.runtime.background_writer import Journal
from cleats.runtime.call import ToolCall
from cleats.runtime.spans import SpanFile
from cleats.runtime.telemetry import CallTelemetry, LocalTracer, escape_log_word
from tests.support.mcp_client import WAIT_TIMEOUT_SECONDS, start_server
from tests.support.spans import run_span_collector
from tests.support.waiting import wait_until


def record_call(call: ToolCall, outcome: Outcome) -> tuple[dict[str, object], str]:
    """Return the span and the log line that one call leaves."""
    lines: dict[object, bytes] = {}
    sink = lines.__setitem__
    tracer = LocalTracer(lambda _batch: None)
    telemetry = CallTelemetry(tracer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journals.PROCESS_JOURNAL, "add_line", sink)
        telemetry.end_call(telemetry.begin_call(call), call, outcome)
    log = lines.pop(journals.write_to_stderr)
    [span] = lines.values()
    return json.loads(span), log.decode()


def test_a_call_leaves_a_span_and_a_line_with_the_same_ids() -> None:
    span, line = record_call(ToolCall(id="7", tool="search", arguments={}, surface="mcp"), Done({}))

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
    failure = Failed(ToolError(ErrorCode.NO_INDEX, "no"))

    span, line = record_call(ToolCall(tool="search", arguments={}), failure)

    assert span["status"] == "ERROR"
    assert "code=NO_INDEX" in line


def test_what_a_tool_notes_is_on_its_span_and_in_its_line() -> None:
    call = ToolCall(tool="launch_validate", arguments={})
    call.note(run_id="r_1 2")

    span, line = record_call(call, Done({}))

    assert span["attributes"]["cleats.run_id"] == "r_1 2"  # type: ignore[index]
    assert " run_id='r_1 2' ms=" in line


def test_the_callers_trace_is_continued() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    span, _ = record_call(ToolCall(tool="search", arguments={}, traceparent=parent), Cancelled())

    assert span["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    assert span["parent_id"] == "b7ad6b7169203331"


@given(st.text())
def test_a_value_from_outside_cannot_start_a_line_of_its_own(value: str) -> None:
    assert "\n" not in escape_log_word(value)
    assert escape_log_word(value).isprintable()


def test_a_span_file_starts_over_at_its_cap_and_old_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "MAX_SPAN_FILE_BYTES", 100)
    for number in range(30):
        (tmp_path / f"spans-{number}.ndjson").write_text("old")
    file = SpanFile(tmp_path)
    for _ in range(5):
        file(b"x" * 60 + b"\n")

    span_path = tmp_path / f"spans-{os.getpid()}.ndjson"
    assert span_path.stat().st_size == 61
    assert span_path.with_suffix(".old").exists()
    assert len(list(tmp_path.iterdir())) <= spans.MAX_SPAN_FILES + 1


def test_an_old_span_file_that_is_gone_or_cannot_be_removed_costs_no_span(tmp_path: Path) -> None:
    (tmp_path / "spans-1.ndjson").symlink_to(tmp_path / "gone")
    for number in range(2, spans.MAX_SPAN_FILES + 5):
        (tmp_path / f"spans-{number}.ndjson").mkdir()

    SpanFile(tmp_path)(b"{}\n")

    assert (tmp_path / f"spans-{os.getpid()}.ndjson").read_bytes() == b"{}\n"


def test_a_reader_that_never_reads_costs_lines_and_not_time() -> None:
    stuck = threading.Event()
    journal = Journal()

    def block_outlet(_batch: bytes) -> None:
        stuck.wait(30)

    for _ in range(journals.MAX_QUEUED_BATCHES * 3):
        journal.add_line(block_outlet, b"x\n")

    assert journal.dropped > 0
    stuck.set()


def test_the_last_lines_are_written_where_no_thread_can_be_started_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def raise_runtime_error(_thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", raise_runtime_error)
    journal, written_batches = Journal(), list[bytes]()

    journal.add_line(written_batches.append, b"one\n")
    journal.add_line(written_batches.append, b"two\n")
    journal.close()

    assert b"".join(written_batches) == b"one\ntwo\n"


def test_the_last_lines_are_waited_for_while_somebody_could_take_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal, written_batches, disk = Journal(), list[bytes](), threading.Event()

    def write_slowly(batch: bytes) -> None:
        disk.wait(WAIT_TIMEOUT_SECONDS)
        written_batches.append(batch)

    def release_disk() -> bool:
        disk.set()
        return True

    monkeypatch.setattr(journals, "STALLED_CLOSE_SECONDS", 0.01)
    monkeypatch.setattr(journals, "MAX_CLOSE_SECONDS", WAIT_TIMEOUT_SECONDS)
    monkeypatch.setattr(journals, "is_stderr_writable", release_disk)
    journal.add_line(write_slowly, b"one\n")
    journal.close()

    assert written_batches == [b"one\n"]


UNREAD_SCRIPT = """
from cleats.runtime import background_writer

background_writer.MAX_CLOSE_SECONDS = 3600
for _ in range(100):
    background_writer.PROCESS_JOURNAL.add_line(background_writer.write_to_stderr, b"x" * 4095 + b"\\n")
"""


def test_a_process_whose_last_lines_nobody_reads_ends_all_the_same() -> None:
    process = subprocess.Popen([sys.executable, "-c", UNREAD_SCRIPT], stderr=subprocess.PIPE)
    try:
        assert process.wait(WAIT_TIMEOUT_SECONDS) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.anyio
async def test_a_line_that_waits_for_company_has_its_thread_already() -> None:
    journal, written_batches = Journal(), list[bytes]()
    journal.add_line(written_batches.append, b"one\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "Thread", None)
        journal.close()

    assert written_batches == [b"one\n"]


def test_a_server_keeps_its_spans_in_its_own_folder(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(1, "echo", text="x")
        peer.wait_for_answer(1)
        peer.close_input()
        peer.wait_for_exit()

    [file] = (tmp_path / ".local/share/cleats/telemetry").iterdir()
    [span] = [json.loads(line) for line in file.read_text().splitlines()]
    assert span["attributes"]["cleats.tool"] == "echo"


def test_with_telemetry_off_nothing_is_written(tmp_path: Path) -> None:
    with start_server(home=tmp_path, CLEATS_TELEMETRY="off") as peer:
        peer.send_call(1, "echo", text="x")
        peer.wait_for_answer(1)
        peer.close_input()
        peer.wait_for_exit()

    assert not (tmp_path / ".local").exists()


def test_a_collector_that_is_not_there_neither_fails_nor_delays_a_call(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9/v1/traces"
    with start_server(home=tmp_path, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=nowhere) as peer:
        for number in range(20):
            peer.send_call(number, "echo", text="x")

            assert peer.wait_for_answer(number)["result"]["isError"] is False


def test_a_collector_gets_the_last_spans_and_holds_up_nobody_beyond_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_the_end: list[object] = []
    monkeypatch.setattr("atexit.register", at_the_end.append)
    with run_span_collector() as collector:
        exporter = spans._get_otlp_tracer.__wrapped__(collector.url)
        assert exporter is not None
        exporter.start_span("last").end()

        [parting] = [item for item in at_the_end if isinstance(item, spans.BoundedShutdown)]
        parting()

        wait_until(lambda: [item.name for item in collector.spans] == ["last"])
    assert not [item for item in at_the_end if getattr(item, "__name__", "") == "shutdown"]


def test_a_process_does_not_wait_for_ever_for_what_ends_with_it() -> None:
    never = threading.Event()

    spans.BoundedShutdown(never.wait, 0.01)()  # comes back all the same

    assert not never.is_set()
    never.set()
