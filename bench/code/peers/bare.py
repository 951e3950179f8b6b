"""The limits: files only parsed, and words only indexed, with nothing made of either.

`bare.py parse FOLDER` parses every file whose language we know, on one core. `bare.py words FOLDER`
puts the raw text of blocks of lines into Tantivy, one field, and answers the questions on stdin
(a JSON list) by BM25. Both print JSON.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

LANGUAGES = {
    ".py": ("tree_sitter_python", "language"),
    ".js": ("tree_sitter_javascript", "language"),
    ".ts": ("tree_sitter_typescript", "language_typescript"),
}
LINES = 40
TOP = 10


def texts(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in LANGUAGES and path.is_file() and ".git" not in path.parts:
            yield path, path.read_bytes()


def parse(folder: Path) -> dict[str, Any]:
    from tree_sitter import Language, Parser  # noqa: PLC0415

    parsers = {
        suffix: Parser(Language(getattr(import_module(module), function)()))
        for suffix, (module, function) in LANGUAGES.items()
    }
    read = list(texts(folder))
    begun = time.process_time()
    for path, data in read:
        parsers[path.suffix].parse(data)
    return {"cpu": time.process_time() - begun, "bytes": sum(len(data) for _, data in read)}


def words(folder: Path, questions: list[str]) -> dict[str, Any]:
    import tantivy  # noqa: PLC0415

    schema = tantivy.SchemaBuilder().add_text_field("text").build()
    read = list(texts(folder))
    with tempfile.TemporaryDirectory() as name:
        begun, cpu = time.perf_counter(), time.process_time()
        index = tantivy.Index(schema, path=name)
        writer = index.writer(heap_size=128 << 20, num_threads=1)
        for _, data in read:
            lines = data.decode(errors="replace").split("\n")
            for start in range(0, len(lines), LINES):
                writer.add_document(tantivy.Document(text="\n".join(lines[start : start + LINES])))
        writer.commit()
        writer.wait_merging_threads()
        built = time.perf_counter() - begun, time.process_time() - cpu
        size = sum(file.stat().st_size for file in Path(name).iterdir())
        index.reload()
        searcher = index.searcher()
        took = []
        for question in questions:
            begun = time.perf_counter()
            searcher.search(index.parse_query_lenient(question, ["text"])[0], TOP)
            took.append(time.perf_counter() - begun)
    return {"build": built, "size": size, "took": took}


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    done = parse(folder) if what == "parse" else words(folder, json.load(sys.stdin))
    json.dump(done, sys.stdout)


main()
