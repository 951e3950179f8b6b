"""`bench.all`: every benchmark takes part, and two runs can be compared."""

import json
import re
from pathlib import Path

import pytest

from bench.all import report, running
from bench.all.__main__ import main
from bench.all.running import BenchmarkOutcome, BenchmarkRun
from bench.ratios import Ratio, divide_figures, parse_ratios, write_ratios
from tests.support.paths import REPOSITORY_ROOT

BENCH_FOLDER = REPOSITORY_ROOT / "bench"

RATE_RATIO = Ratio("rate, calls/s", "stock", 8.0, more=True)
COST_RATIO = Ratio("cost, CPU", "bare", 2.0)


def make_run(commit: str, *ratios: Ratio, other_load: float = 0.0, machine: str = "m") -> BenchmarkRun:
    return BenchmarkRun(commit, machine, {"calls": BenchmarkOutcome(list(ratios), other_load, 1.5)})


def save_run(folder: Path, run: BenchmarkRun) -> str:
    path = folder / f"{run.commit}.json"
    path.write_text(json.dumps(run.as_json()))
    return str(path)


def test_every_benchmark_takes_part_and_gives_its_ratios() -> None:
    folders = {path.parent.name for path in BENCH_FOLDER.glob("*/__main__.py")} - {"all", "agents"}

    assert set(running.list_benchmarks()) == folders >= {"assets", "calls", "code", "http", "skills"}
    for name in folders:
        program = (BENCH_FOLDER / name / "__main__.py").read_text()
        assert "ratios.add_ratios_option(parser)" in program, name
        assert re.search(r"ratios\.write_ratios\(\s*options\.ratios,", program), name
        assert running.get_arguments(name, quick=True), name


def test_ratios_survive_the_file_between_two_processes(tmp_path: Path) -> None:
    path = tmp_path / "ratios.json"
    write_ratios(path, [RATE_RATIO, COST_RATIO], 0.25)
    write_ratios(None, [RATE_RATIO], 0.0)

    document = json.loads(path.read_text())

    assert parse_ratios(document) == [RATE_RATIO, COST_RATIO]
    assert document["others"] == 0.25


def test_what_was_not_measured_has_no_ratio() -> None:
    assert divide_figures("x", 4.0, {"a": 2.0, "b": None, "c": 0.0}) == [Ratio("x", "a", 2.0)]
    assert divide_figures("x", None, {"a": 2.0}) == []


def test_the_table_holds_ratios_and_says_which_are_rough() -> None:
    run = make_run("abc", RATE_RATIO, COST_RATIO, other_load=0.5)
    run.outcomes["http"] = BenchmarkOutcome(problem="exit code 1")

    lines = report.render_report(run).splitlines()

    assert lines[0] == "abc, m"
    assert lines[2].split() == ["bench", "our", "figure", "to", "that", "of", *_list_first_words("ratio")]
    assert lines[3].split() == ["calls", "rate,", "calls/s", "stock", "8.00x", "more"]
    assert lines[4].split() == ["calls", "cost,", "CPU", "bare", "2.00x", "less"]
    assert "bench.calls: others took 50% of the CPUs; rough" in lines
    assert "bench.http: exit code 1" in lines


def _list_first_words(first: str) -> list[str]:
    return [first, "better", "is"]


def test_two_runs_are_compared_ratio_by_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone, new = Ratio("gone", "a", 1.0), Ratio("new", "a", 1.0)
    slower = Ratio(RATE_RATIO.name, RATE_RATIO.beside, 6.0, more=True)
    cheaper, same = Ratio(COST_RATIO.name, COST_RATIO.beside, 1.0), Ratio("same", "a", 1.03)
    old = save_run(tmp_path, make_run("old", RATE_RATIO, COST_RATIO, gone, Ratio("same", "a", 1.0)))
    now = save_run(tmp_path, make_run("now", slower, cheaper, new, same, machine="another"))
    monkeypatch.setattr("sys.argv", ["bench.all", "--compare", old, now])

    code = main()

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert code == 0
    assert ["calls", "rate,", "calls/s", "stock", "8.00x", "6.00x", "-25%", "WORSE"] in lines
    assert ["calls", "cost,", "CPU", "bare", "2.00x", "1.00x", "-50%", "better"] in lines
    assert ["calls", "same", "a", "1.00x", "1.03x", "+3%"] in lines
    assert ["only", "in", "old:", "calls,", "gone,", "a"] in lines
    assert ["only", "in", "now:", "calls,", "new,", "a"] in lines
    assert ["two", "machines:", "m;", "another"] in lines


@pytest.mark.parametrize("content", ["[]", "{", '{"format": 0}'])
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    monkeypatch.setattr("sys.argv", ["bench.all", "--compare", str(path), str(path)])

    assert main() == 2


def test_a_run_is_saved_with_its_commit_and_comes_back(tmp_path: Path) -> None:
    run = make_run("abc", RATE_RATIO, COST_RATIO)

    assert running.read_saved_run(Path(save_run(tmp_path, run))) == run


def test_a_benchmark_that_does_not_run_is_a_problem_and_not_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.executable", "false")

    outcomes = running.run_benchmarks(["assets", "calls"], quick=True).outcomes

    assert {name: outcome.problem for name, outcome in outcomes.items()} == {
        "assets": "exit code 1",
        "calls": "exit code 1",
    }
