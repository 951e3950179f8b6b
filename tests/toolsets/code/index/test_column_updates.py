"""Columns that are updated have the bytes of columns that are written from all files."""

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from cleats.toolsets.code.analysis.extract import extract_facts
from cleats.toolsets.code.index import tokens
from cleats.toolsets.code.index.column_updates import update_columns
from cleats.toolsets.code.index.column_writer import CONTENT_FILE_NAME, ContentColumns
from cleats.toolsets.code.index.digest import digest_file, unpack_attributes

WORDS = ("alpha", "Beta", "gamma", "größe", "delta", "ΕΣ", "run")


def add_files(files: Mapping[str, str]) -> ContentColumns:
    columns = ContentColumns()
    for path, text in sorted(files.items()):
        data = text.encode()
        facts = extract_facts(path, data, "python" if path.endswith(".py") else "markdown", "code")
        attributes = unpack_attributes(digest_file(path, facts, data)[0])
        columns.add_file(path, tokens.stem_text(path), facts.imports, attributes)
    return columns


def write_text(rng: random.Random) -> str:
    one, two = rng.sample(WORDS, 2)
    lines = [
        f"import {one}",
        f"class {two}({one}):",
        f"    async def {one}(self, {two}=0):",
        f"        return {two}({one})",
    ]
    return "\n".join(lines[: rng.choice((0, 1, 4, 4))] * rng.randint(1, 2)) + "\n"


@pytest.mark.parametrize("seed", range(8))
def test_updated_columns_have_the_bytes_of_new_ones(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    suffixes = ("py", "md") if seed % 2 else ("py",)
    files = {f"m{number}.{rng.choice(suffixes)}": write_text(rng) for number in range(rng.choice((1, 6, 12)))}
    previous = tmp_path / "0"
    previous.mkdir()
    add_files(files).save(previous)

    for step in range(1, 8):
        removed = set(rng.sample(sorted(files), rng.randint(0, min(2, len(files)))))
        added = {f"m{rng.randint(0, 30)}.{rng.choice(suffixes)}": write_text(rng) for _ in range(rng.randint(0, 3))}
        kept = sorted(files.keys() - removed - added.keys())
        numbers = {path: number for number, path in enumerate(sorted(files))}
        numbers = {path: numbers[path] for path in kept} | {
            path: len(files) + number for number, path in enumerate(sorted(added))
        }
        files = {path: files[path] for path in kept} | added
        updated, fresh = tmp_path / f"{step}", tmp_path / f"fresh{step}"
        updated.mkdir()
        fresh.mkdir()
        add_files(files).save(fresh)
        if not files:
            previous = fresh
            continue
        update_columns(previous, updated, add_files(added), [numbers[path] for path in sorted(files)])

        assert (updated / CONTENT_FILE_NAME).read_bytes() == (fresh / CONTENT_FILE_NAME).read_bytes()
        previous = updated
