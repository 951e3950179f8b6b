"""Patches say what they start from and what they lead to, and can be applied again at any time."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch import artifacts, pages
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.patching.front import updated
from cleats.toolsets.launch.patching.worktree import changed_paths, worktree_hash
from cleats.toolsets.launch.source.git import kept
from tests.git_world import Checkout
from tests.shell import LAW

PAGE = """---
title: Docs # for people
weight: 10
tags:
- a
- b
---

Intro.

## Related Links

- [One](/one/)

## Last

End.
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/_index.md").write_text(PAGE)
    return tmp_path


def chain() -> dict[str, Any]:
    """Two files: a new one, and one that is changed three times."""
    link = patches.update_by_anchor("docs/_index.md", PAGE, "Related Links", "- [Two](/two/)")
    linked = patches.after(link, PAGE)
    front = patches.update_front_matter("docs/_index.md", linked, {"weight": 20, "draft": False})
    fronted = patches.after(front, linked)
    lines = fronted.count("\n")
    ranged = patches.update_range("docs/_index.md", fronted, lines, lines, "The end.\n")
    return patches.bundle([patches.create_file("docs/new.md", "New.\n"), link, front, ranged])


def test_a_bundle_fits_its_schema_and_is_the_same_each_time() -> None:
    document = patches.bundle([*chain()["patches"], patches.delete_file("docs/old.md", "x")])

    artifacts.check("patch_bundle.json", document)

    assert chain() == chain()
    assert len({patch["patch_id"] for patch in document["patches"]}) == 5


def test_a_chain_of_patches_is_applied_in_order(site: Path) -> None:
    document = chain()

    done = patches.apply(document, Fence(site, ["docs"]))

    assert done == [patch["patch_id"] for patch in document["patches"]]
    assert (site / "docs/new.md").read_text() == "New.\n"
    assert (site / "docs/_index.md").read_text() == (
        "---\ntitle: Docs # for people\nweight: 20\ntags:\n- a\n- b\ndraft: false\n---\n\n"
        "Intro.\n\n"
        "## Related Links\n\n- [One](/one/)\n- [Two](/two/)\n\n## Last\n\nThe end.\n"
    )


def test_applying_again_changes_nothing_and_answers_the_same(site: Path) -> None:
    document = chain()
    first = patches.apply(document, Fence(site, ["docs"]))
    page = (site / "docs/_index.md").stat()

    again = patches.apply(document, Fence(site, ["docs"]))

    assert again == first
    assert (site / "docs/_index.md").stat().st_mtime_ns == page.st_mtime_ns


@pytest.mark.parametrize("done", range(5))
def test_a_bundle_that_was_killed_half_way_is_finished(site: Path, done: int) -> None:
    document = chain()
    whole = site / "whole"
    (whole / "docs").mkdir(parents=True)
    (whole / "docs/_index.md").write_text(PAGE)
    patches.apply(document, Fence(whole, ["docs"]))
    text = PAGE
    for patch in document["patches"][:done]:
        if patch["type"] == "create_file":
            (site / patch["path"]).write_text(patch["new_content"])
        else:
            text = patches.after(patch, text)
            (site / patch["path"]).write_text(text)

    patches.apply(document, Fence(site, ["docs"]))

    for name in ("docs/_index.md", "docs/new.md"):
        assert (site / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (patches.create_file("docs/_index.md", "other\n"), "FILE_EXISTS_CONFLICT"),
        (patches.update_range("docs/none.md", "a\n", 1, 1, "c"), "FILE_MISSING"),
        (patches.delete_file("docs/_index.md", "another text"), "HASH_MISMATCH"),
        (patches.update_range("docs/_index.md", "a\nb\n", 1, 1, "c"), "HASH_MISMATCH"),
        (
            {**patches.update_by_anchor("docs/_index.md", PAGE, "Last", "x"), "anchor": "None"},
            "ANCHOR_MISSING",
        ),
        (
            {**patches.update_range("docs/_index.md", PAGE, 1, 1, "x"), "end_line": 99},
            "RANGE_OUT_OF_BOUNDS",
        ),
        (
            {**patches.update_range("docs/_index.md", PAGE, 1, 1, "x"), "new_content": "y"},
            "HASH_MISMATCH",
        ),
    ],
)
def test_a_patch_that_does_not_fit_is_a_conflict_and_nothing_is_written(
    site: Path, patch: dict[str, Any], reason: str
) -> None:
    document = patches.bundle([patches.create_file("docs/new.md", "New.\n"), patch])
    fence = Fence(site, ["docs"])

    with pytest.raises(ToolError) as caught:
        patches.apply(document, fence)

    found = [conflict.as_json() for conflict in patches.conflicts(document, fence)]
    assert [each["reason"] for each in found] == [reason]
    assert caught.value.details["error_code"] == "LINKER_PATCHER_CONFLICT_UNRESOLVABLE"
    assert caught.value.details["conflicts"] == found
    artifacts.check("patch_conflicts.json", {"schema_version": "1.0", "conflicts": found})
    assert sorted(path.name for path in (site / "docs").iterdir()) == ["_index.md"]
    assert (site / "docs/_index.md").read_text() == PAGE


def test_a_path_outside_the_fence_stops_the_whole_bundle(site: Path) -> None:
    document = patches.bundle(
        [patches.create_file("docs/new.md", "New.\n"), patches.create_file("docs2/x.md", "x")]
    )

    with pytest.raises(ToolError) as caught:
        patches.apply(document, Fence(site, ["docs"]))

    assert caught.value.code is ErrorCode.ALLOWED_PATHS_VIOLATION
    assert not (site / "docs/new.md").exists()


def test_an_empty_file_is_not_a_missing_one(site: Path) -> None:
    (site / "docs/empty.md").write_text("")
    document = patches.bundle([patches.delete_file("docs/empty.md", "")])
    fence = Fence(site, ["docs"])

    assert patches.conflicts(patches.bundle([patches.create_file("docs/empty.md", "x")]), fence)
    patches.apply(document, fence)
    patches.apply(document, fence)
    assert not (site / "docs/empty.md").exists()


def test_text_goes_to_the_end_of_its_section_also_when_it_is_the_last() -> None:
    added = patches.update_by_anchor("p.md", PAGE, "#last", "More.")

    assert patches.after(added, PAGE).endswith("## Last\n\nEnd.\n\nMore.\n")


@pytest.mark.parametrize(
    ("before", "updates", "after"),
    [
        ("---\na: 1\nb: 2\n---\nx\n", {"a": None}, "---\nb: 2\n---\nx\n"),
        ("---\na:\n  - 1\n\n  - 2\nb: 2\n---\nx\n", {"a": 3}, "---\na: 3\nb: 2\n---\nx\n"),
        ("---\n'a': |\n  t\n  u\nb: 2\n---\nx\n", {"a": ["x"]}, "---\na:\n- x\nb: 2\n---\nx\n"),
        ("+++\na = [\n 1,\n]\n[t]\nb = 1\n+++\nx\n", {"a": "q", "c": True},
         '+++\na = "q"\nc = true\n[t]\nb = 1\n+++\nx\n'),
        ('{"a": 1}\nx\n', {"b": 2}, '{\n  "a": 1,\n  "b": 2\n}\nx\n'),
        ("x\n", {"title": "T"}, "---\ntitle: T\n---\n\nx\n"),
    ],
)  # fmt: skip
def test_only_the_lines_of_a_key_change(before: str, updates: dict[str, Any], after: str) -> None:
    assert updated(before, updates) == after


def test_front_matter_that_cannot_be_read_is_a_conflict(site: Path) -> None:
    with pytest.raises(patches.ConflictError) as caught:
        patches.update_front_matter("docs/_index.md", "---\na: [\n---\n", {"a": 1})

    assert caught.value.reason == "FRONTMATTER_INVALID"


KEYS = st.sampled_from(["title", "weight", "draft", "tags"])
VALUES = (
    st.none()
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
    | st.integers()
    | st.booleans()
    | st.lists(st.text("ab: #", max_size=3), max_size=3)
)


@LAW
@given(st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3), max_size=3))
def test_whatever_is_set_reads_back_and_the_rest_stays(updates: list[dict[str, Any]]) -> None:
    text, front = PAGE, dict(pages.parse(PAGE).front)
    for each in updates:
        text = updated(text, each)
        front.update(each)

    assert pages.parse(text).front == {k: v for k, v in front.items() if v is not None}
    assert pages.parse(text).body == pages.parse(PAGE).body


LINES = st.lists(st.text("ab ", max_size=4), min_size=1, max_size=6)


@LAW
@given(LINES, LINES, st.data())
def test_a_range_is_replaced_as_lists_of_lines_are(
    lines: list[str], new: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(1, len(lines)))
    end = data.draw(st.integers(start - 1, len(lines)))
    before = "\n".join(lines) + "\n"

    patch = patches.update_range("p", before, start, end, "\n".join(new) + "\n")

    expected = [*lines[: start - 1], *new, *lines[end:]]
    assert patches.after(patch, before) == "\n".join(expected) + "\n"


@pytest.mark.anyio
async def test_the_worktree_hash_knows_every_change_and_no_ignored_file(tmp_path: Path) -> None:
    repository = Checkout.new(tmp_path / "site")
    repository.commit(a__md="a", b__md="b", __gitignore="public/\n")
    root, env, base = repository.root, kept(os.environ), repository.git("rev-parse", "HEAD")
    seen = [await worktree_hash(root, base, env)]

    async def now(expected: list[str]) -> None:
        seen.append(await worktree_hash(root, base, env))
        assert await changed_paths(root, base, env) == expected

    (root / "c é.md").write_text("c")
    await now(["c é.md"])
    (root / "a.md").write_text("A")
    await now(["a.md", "c é.md"])
    (root / "b.md").unlink()
    await now(["a.md", "b.md", "c é.md"])
    repository.git("add", "--all")
    assert await worktree_hash(root, base, env) == seen[-1]
    (root / "public").mkdir()
    (root / "public/x").write_text("x")
    (root / ".c.md.cleats-part").write_text("half")
    assert await worktree_hash(root, base, env) == seen[-1]
    (root / "c é.md").write_text("C")
    await now(["a.md", "b.md", "c é.md"])

    assert len(set(seen)) == len(seen)
