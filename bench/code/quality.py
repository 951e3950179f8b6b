"""How well questions are answered: by us, by us without meaning, and by semble.

Three kinds of questions: documentation that was taken away from its function, questions written by
hand, and names. Weights are chosen on the even questions and reported on the odd ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.calls.process import Broken
from bench.calls.servers import NotInstalled
from bench.code import heldout, ours, questions, rivals
from bench.code.answers import Passage, Score, place, score
from bench.code.corpora import Corpus

SYSTEMS: Mapping[str, Mapping[str, Any]] = {
    "cleats": {},
    "tests alike": {"tests_lower": False},
    "without meaning": {"ann": False},
}
"""Our own searches, by the arguments that make the difference."""


class Case(Protocol):
    """A question that has an answer."""

    @property
    def question(self) -> str: ...

    def fits(self, found: Passage) -> bool: ...


@dataclass(frozen=True, slots=True)
class Task:
    """Questions about one folder."""

    corpus: str
    kind: str
    folder: Path
    cases: Sequence[Case]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one system did in one task, on the half of the questions that is reported."""

    corpus: str
    kind: str
    system: str
    score: Score


def tasks(corpora: Sequence[Corpus]) -> Iterator[Task]:
    """Every task that these corpora give."""
    for corpus in corpora:
        folder, cases = heldout.prepare(corpus)
        if cases:
            yield Task(corpus.name, "documentation", folder, reported(cases))
        for kind, asked in (
            ("by hand", questions.by_hand(corpus)),
            ("names", questions.symbols(corpus)),
        ):
            if asked:
                yield Task(corpus.name, kind, corpus.prepare(), asked)


def reported(cases: Sequence[Case]) -> Sequence[Case]:
    """The half that nothing was chosen by."""
    return cases[1::2]


def measure(task: Task, cache: Path, problems: list[str]) -> Iterator[Outcome]:
    """Every system on one task."""
    asked = [case.question for case in task.cases]
    ours.build(task.folder, cache)
    with ours.opened(task.folder, cache) as engine:
        for name, arguments in SYSTEMS.items():
            found = [ours.passages(ours.ask(engine, text, **arguments)) for text in asked]
            yield Outcome(task.corpus, task.kind, name, _score(task, found))
    try:
        _, answer = rivals.semble(task.folder, asked, cache)
    except (Broken, NotInstalled) as error:
        problems.append(f"semble, {task.corpus}, {task.kind}: {error}")
        return
    listed = [[Passage(*each) for each in results] for results in answer["answers"]]
    yield Outcome(task.corpus, task.kind, "semble", _score(task, listed))


def _score(task: Task, found: Sequence[Any]) -> Score:
    fitting: list[Callable[[Passage], bool]] = [case.fits for case in task.cases]
    return score([place(each, fits) for each, fits in zip(found, fitting, strict=True)])
