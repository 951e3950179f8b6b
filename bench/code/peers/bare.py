"""The limits: files that are only parsed, and words that are only indexed.

`bare.py parse FOLDER` parses every file of a known language on one core. `bare.py words FOLDER`
puts the raw text of blocks of lines into one Tantivy field and answers the questions on stdin (a
JSON list) by BM25. Both print JSON.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

GRAMMARS_BY_SUFFIX = {
    ".py": ("tree_sitter_python", "language"),
    ".js": ("tree_sitter_javascript", "language"),
    ".ts": ("tree_sitter_typescript", "language_typescript"),
}
BLOCK_LINES = 40
MAX_RESULTS = 10


def iterate_files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in GRAMMARS_BY_SUFFIX and path.is_file() and ".git" not in path.parts:
            yield path, path.read_bytes()


def measure_parsing(folder: Path) -> dict[str, Any]:
    from tree_sitter import Language, Parser  # noqa: PLC0415

    parsers = {
        suffix: Parser(Language(getattr(import_module(module), function)()))
        for suffix, (module, function) in GRAMMARS_BY_SUFFIX.items()
    }
    files = list(iterate_files(folder))
    cpu_start = time.process_time()
    for path, data in files:
        parsers[path.suffix].parse(data)
    return {"cpu": time.process_time() - cpu_start, "bytes": sum(len(data) for _, data in files)}


def measure_word_index(folder: Path, questions: list[str]) -> dict[str, Any]:
    import tantivy  # noqa: PLC0415

    schema = tantivy.SchemaBuilder().add_text_field("text").build()
    files = list(iterate_files(folder))
    with tempfile.TemporaryDirectory() as name:
        start_time, cpu = time.perf_counter(), time.process_time()
        index = tantivy.Index(schema, path=name)
        writer = index.writer(heap_size=128 << 20, num_threads=1)
        for _, data in files:
            lines = data.decode(errors="replace").split("\n")
            for start in range(0, len(lines), BLOCK_LINES):
                writer.add_document(tantivy.Document(text="\n".join(lines[start : start + BLOCK_LINES])))
        writer.commit()
        writer.wait_merging_threads()
        built = time.perf_counter() - start_time, time.process_time() - cpu
        size = sum(file.stat().st_size for file in Path(name).iterdir())
        index.reload()
        searcher = index.searcher()
        times = []
        for question in questions:
            start_time = time.perf_counter()
            searcher.search(index.parse_query_lenient(question, ["text"])[0], MAX_RESULTS)
            times.append(time.perf_counter() - start_time)
    return {"build": built, "size": size, "took": times}


def main() -> None:
    mode, folder = sys.argv[1], Path(sys.argv[2])
    figures = measure_parsing(folder) if mode == "parse" else measure_word_index(folder, json.load(sys.stdin))
    json.dump(figures, sys.stdout)


main()
