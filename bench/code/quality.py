"""The quality of answers: of Cleats, of Cleats without semantic search, and of semble.

There are three kinds of questions: documentation that was removed from its function, questions
written by hand, and names. Weights are chosen on the even questions and reported on the odd ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.calls.process import BenchmarkError
from bench.calls.servers import PeerNotInstalledError
from bench.code import heldout, ours, questions, rivals
from bench.code.answers import QualityScore, ResultPassage, find_rank, score_ranks
from bench.code.corpora import Corpus

SYSTEM_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "cleats": {},
    "tests alike": {"tests_lower": False},
    "without meaning": {"ann": False},
}
"""Our own searches, by the arguments in which they differ."""


class QuestionCase(Protocol):
    """A question that has an answer."""

    @property
    def question(self) -> str: ...

    def matches(self, passage: ResultPassage) -> bool: ...


@dataclass(frozen=True, slots=True)
class QuestionTask:
    """Questions about one folder."""

    corpus: str
    kind: str
    folder: Path
    cases: Sequence[QuestionCase]


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The score of one system in one task, on the half of the questions that is reported."""

    corpus: str
    kind: str
    system: str
    score: QualityScore


def build_tasks(corpora: Sequence[Corpus]) -> Iterator[QuestionTask]:
    """Build every task for these corpora."""
    for corpus in corpora:
        folder, cases = heldout.prepare_cases(corpus)
        if cases:
            yield QuestionTask(corpus.name, "documentation", folder, select_reported(cases))
        for kind, corpus_questions in (
            ("by hand", questions.load_questions(corpus)),
            ("names", questions.choose_symbols(corpus)),
            ("constants", questions.choose_constants(corpus)),
        ):
            if corpus_questions:
                yield QuestionTask(corpus.name, kind, corpus.prepare(), corpus_questions)


def select_reported(cases: Sequence[QuestionCase]) -> Sequence[QuestionCase]:
    """Return the half of the cases that no weights were chosen by."""
    return cases[1::2]


def measure_task(task: QuestionTask, cache: Path, problems: list[str]) -> Iterator[TaskOutcome]:
    """Measure every system on one task."""
    texts = [case.question for case in task.cases]
    ours.build_index(task.folder, cache)
    with ours.open_engine(task.folder, cache) as engine:
        for name, arguments in SYSTEM_ARGUMENTS.items():
            results_by_question = [ours.iterate_passages(ours.search_code(engine, text, **arguments)) for text in texts]
            yield TaskOutcome(task.corpus, task.kind, name, _score_results(task, results_by_question))
    try:
        _, answer = rivals.run_semble(task.folder, texts, cache)
    except (BenchmarkError, PeerNotInstalledError) as error:
        problems.append(f"semble, {task.corpus}, {task.kind}: {error}")
        return
    semble_results = [[ResultPassage(*line_range) for line_range in results] for results in answer["answers"]]
    yield TaskOutcome(task.corpus, task.kind, "semble", _score_results(task, semble_results))


def _score_results(task: QuestionTask, results_by_question: Sequence[Any]) -> QualityScore:
    matchers: list[Callable[[ResultPassage], bool]] = [case.matches for case in task.cases]
    return score_ranks(
        [find_rank(passages, matches) for passages, matches in zip(results_by_question, matchers, strict=True)]
    )
