"""The command: `python -m conformance.contract`.

Compares random pairs of schemas with the contract gate and checks every verdict and every witness
with the `jsonschema` package. The pairs have references of all forms, recursion, draft-07 and
unevaluated keywords; the same seed makes the same pairs.

Exit codes: 0 if no verdict is unsafe, every witness is true and enough findings have one; else 1.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context

from conformance.contract.trial import Trial, run_trial

LEAST_WITNESS_SHARE = 0.9
SHOWN_TRIALS = 10
"""Unsafe or untrue pairs that are shown in full."""

CHUNK_TRIALS = 50


@dataclass
class Totals:
    """The outcome of a run."""

    pairs: int = 0
    breaking_pairs: int = 0
    breaking_pairs_with_witness: int = 0
    breaking: Counter[str] = field(default_factory=Counter)
    with_witness: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    unsafe: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def add(self, trial: Trial) -> None:
        self.pairs += 1
        self.breaking_pairs += trial.is_breaking
        self.breaking_pairs_with_witness += trial.has_witness
        self.breaking.update(finding.rule.id for finding in trial.breaking)
        self.with_witness.update(finding.rule.id for finding in trial.breaking if finding.witness is not None)
        self.features.update(trial.features)
        if trial.is_unsafe:
            self.unsafe.append(trial.describe())
        if trial.false_witnesses:
            self.untrue.append(trial.describe())
        if trial.is_missed:
            self.missed.append(trial.describe())

    @property
    def witness_share(self) -> float:
        return self.with_witness.total() / max(self.breaking.total(), 1)

    @property
    def is_good(self) -> bool:
        return not self.unsafe and not self.untrue and self.witness_share >= LEAST_WITNESS_SHARE


def main() -> int:
    """Return 0 if all is well, else 1."""
    parser = argparse.ArgumentParser(prog="python -m conformance.contract", description=__doc__.splitlines()[2])
    parser.add_argument("--pairs", type=int, default=2_000, help="the number of pairs [default: 2000]")
    parser.add_argument("--seed", type=int, default=1, help="the first seed [default: 1]")
    parser.add_argument("--show-missed", action="store_true", help="show pairs whose witness was missed")
    options = parser.parse_args()
    totals = Totals()
    for trial in run_trials(options.pairs, options.seed):
        totals.add(trial)
    print(render_totals(totals, options.seed))
    for title, trials in (("Unsafe", totals.unsafe), ("Untrue witness", totals.untrue)):
        for text in trials[:SHOWN_TRIALS]:
            print(f"{title}: {text}")
    for text in totals.missed if options.show_missed else ():
        print(f"Missed: {text}")
    return 0 if totals.is_good else 1


def run_trials(pairs: int, seed: int) -> Iterator[Trial]:
    """Yield the trials of a seed, in processes of their own: a prover can overflow its stack."""
    seeds = (f"{seed}:{number}" for number in range(10 * pairs))
    count = 0
    with get_context("spawn").Pool(min(os.cpu_count() or 1, 4), maxtasksperchild=20) as pool:
        for trial in pool.imap(run_trial, seeds, chunksize=CHUNK_TRIALS):
            if trial is None:
                continue
            yield trial
            count += 1
            if count == pairs:
                pool.terminate()
                return


def render_totals(totals: Totals, seed: int) -> str:
    """Render the figures as text."""
    safe_count = totals.pairs - totals.breaking_pairs
    found, breaking = totals.with_witness.total(), totals.breaking.total()
    lines = [
        f"{totals.pairs} pairs, seed {seed}",
        f"unsafe verdicts: {len(totals.unsafe)} of {safe_count} that call a change safe",
        f"breaking pairs with a refused value: {totals.breaking_pairs_with_witness} of {totals.breaking_pairs}",
        f"breaking findings with a witness: {found} of {breaking} ({totals.witness_share:.1%})",
        f"untrue witnesses: {len(totals.untrue)} of {found}",
        f"breaking pairs without a refused value for which a random one was found: {len(totals.missed)}",
    ]
    lines += [f"  {rule:<28}{totals.with_witness[rule]:>6} of {count}" for rule, count in totals.breaking.most_common()]
    lines += [f"feature {name}: {count} pairs" for name, count in sorted(totals.features.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
