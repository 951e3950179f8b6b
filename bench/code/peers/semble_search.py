"""semble, as its users run it: index a folder, then answer questions; runs in its own environment.

Its default model cannot be had from a package registry, so it gets ours: the word table as a
model2vec model, with identifiers split as we split them. That shows its chunks and its ranking,
not its best case.

Reads `{"folder", "table", "questions"}` as JSON from stdin and answers with JSON on stdout.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from model2vec import StaticModel  # type: ignore[import-not-found]
from tokenizers import (  # type: ignore[import-not-found]
    Regex,
    Tokenizer,
    models,
    pre_tokenizers,
)

TOP = 10
PARTS = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"


def model(table: Path, folder: Path) -> Path:
    words = (table / "words.txt").read_text().split()
    rows = np.load(table / "vectors.npy").astype(np.float32)
    # Splitting needs the case, so every way to write a word has a row of its own.
    forms: dict[str, int | None] = {"[UNK]": None}
    for number, word in enumerate(words):
        forms |= dict.fromkeys((word, word.capitalize(), word.upper()), number)
    blank = np.zeros(rows.shape[1], np.float32)
    vectors = np.array([blank if row is None else rows[row] for row in forms.values()])
    numbers = {form: number for number, form in enumerate(forms)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PARTS), "removed", invert=True)
    StaticModel(vectors, tokenizer, normalize=True).save_pretrained(str(folder))
    return folder


def main() -> None:
    given = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = os.environ["SEMBLE_CACHE_DIR"] = str(Path(name) / "cache")
        made = model(Path(given["table"]), Path(name) / "model")
        from semble import (  # type: ignore[import-not-found]  # noqa: PLC0415 - reads the environment
            SembleIndex,
        )

        begun, cpu = time.perf_counter(), time.process_time()
        index = SembleIndex.from_path(given["folder"], model_path=str(made))
        built = time.perf_counter() - begun, time.process_time() - cpu
        answers, took = [], []
        for question in given["questions"]:
            begun = time.perf_counter()
            found = index.search(question, top_k=TOP)
            took.append(time.perf_counter() - begun)
            answers.append(
                [[r.chunk.file_path, r.chunk.start_line, r.chunk.end_line] for r in found]
            )
        json.dump(
            {
                "chunks": index.stats.total_chunks,
                "build": built,
                "took": took,
                "answers": answers,
            },
            sys.stdout,
        )


main()
