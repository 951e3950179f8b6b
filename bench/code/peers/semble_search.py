"""semble as its users run it: index a folder, then answer questions; runs in its own environment.

Its default model is not available from a package registry, so it gets ours: the word table as a
model2vec model, with identifiers split in our way. That shows its chunks and its ranking, not its
best case.

Reads `{"folder", "table", "questions", "results"}` as JSON from stdin and answers with JSON on stdout.
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

DEFAULT_RESULTS = 10
IDENTIFIER_PART_PATTERN = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"


def build_model(table: Path, folder: Path) -> Path:
    words = (table / "words.txt").read_text().split()
    rows = np.load(table / "vectors.npy").astype(np.float32)
    # Splitting needs the case, so every way to write a word has a row of its own.
    forms: dict[str, int | None] = {"[UNK]": None}
    for number, word in enumerate(words):
        forms |= dict.fromkeys((word, word.capitalize(), word.upper()), number)
    blank = np.zeros(rows.shape[1], np.float32)
    vectors = np.array([blank if row is None else rows[row] for row in forms.values()])
    form_numbers = {form: number for number, form in enumerate(forms)}
    tokenizer = Tokenizer(models.WordLevel(form_numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(IDENTIFIER_PART_PATTERN), "removed", invert=True)
    StaticModel(vectors, tokenizer, normalize=True).save_pretrained(str(folder))
    return folder


def main() -> None:
    request = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = os.environ["SEMBLE_CACHE_DIR"] = str(Path(name) / "cache")
        model_folder = build_model(Path(request["table"]), Path(name) / "model")
        from semble import (  # type: ignore[import-not-found]  # noqa: PLC0415 - reads the environment
            SembleIndex,
        )

        start_time, cpu = time.perf_counter(), time.process_time()
        index = SembleIndex.from_path(request["folder"], model_path=str(model_folder))
        built = time.perf_counter() - start_time, time.process_time() - cpu
        answers, times = [], []
        for question in request["questions"]:
            start_time = time.perf_counter()
            results = index.search(question, top_k=request.get("results", DEFAULT_RESULTS))
            times.append(time.perf_counter() - start_time)
            answers.append(
                [[result.chunk.file_path, result.chunk.start_line, result.chunk.end_line] for result in results]
            )
        json.dump(
            {
                "chunks": index.stats.total_chunks,
                "build": built,
                "took": times,
                "answers": answers,
            },
            sys.stdout,
        )


main()
