"""Tests of patches: they state their start and their result, and can be applied again."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import front_matter
from cleats.system.front_matter import set_front_matter_keys
from cleats.system.git import filter_git_environment
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard, hash_worktree, list_changed_paths
from cleats.toolsets.launch.runs import artifacts
from tests.support.git_repositories import GitCheckout
from tests.support.shell import LAW_SETTINGS

PAGE_TEXT = """---
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
    (tmp_path / "docs/_index.md").write_text(PAGE_TEXT)
    return tmp_path


def build_bundle() -> dict[str, Any]:
    """Build a bundle for two files: a new one, and one that is changed three times."""
    link_patch = patches.make_anchor_patch("docs/_index.md", PAGE_TEXT, "Related Links", "- [Two](/two/)")
    linked_text = patches.apply_patch_to_text(link_patch, PAGE_TEXT)
    front_patch = patches.make_front_matter_patch("docs/_index.md", linked_text, {"weight": 20, "draft": False})
    patched_text = patches.apply_patch_to_text(front_patch, linked_text)
    line_count = patched_text.count("\n")
    range_patch = patches.make_range_patch("docs/_index.md", patched_text, line_count, line_count, "The end.\n")
    return patches.make_bundle(
        [patches.make_create_patch("docs/new.md", "New.\n"), link_patch, front_patch, range_patch]
    )


def test_a_bundle_fits_its_schema_and_is_the_same_each_time() -> None:
    document = patches.make_bundle([*build_bundle()["patches"], patches.make_delete_patch("docs/old.md", "x")])

    artifacts.check_document("patch_bundle.json", document)

    assert build_bundle() == build_bundle()
    assert len({patch["patch_id"] for patch in document["patches"]}) == 5


def test_a_chain_of_patches_is_applied_in_order(site: Path) -> None:
    document = build_bundle()

    done = patches.apply_bundle(document, WorktreeGuard(site, ["docs"]))

    assert done == [patch["patch_id"] for patch in document["patches"]]
    assert (site / "docs/new.md").read_text() == "New.\n"
    assert (site / "docs/_index.md").read_text() == (
        "---\ntitle: Docs # for people\nweight: 20\ntags:\n- a\n- b\ndraft: false\n---\n\n"
        "Intro.\n\n"
        "## Related Links\n\n- [One](/one/)\n- [Two](/two/)\n\n## Last\n\nThe end.\n"
    )


def test_applying_again_changes_nothing_and_answers_the_same(site: Path) -> None:
    document = build_bundle()
    first = patches.apply_bundle(document, WorktreeGuard(site, ["docs"]))
    page = (site / "docs/_index.md").stat()

    again = patches.apply_bundle(document, WorktreeGuard(site, ["docs"]))

    assert again == first
    assert (site / "docs/_index.md").stat().st_mtime_ns == page.st_mtime_ns


@pytest.mark.parametrize("done", range(5))
def test_a_bundle_that_was_killed_half_way_is_finished(site: Path, done: int) -> None:
    document = build_bundle()
    complete_site = site / "whole"
    (complete_site / "docs").mkdir(parents=True)
    (complete_site / "docs/_index.md").write_text(PAGE_TEXT)
    patches.apply_bundle(document, WorktreeGuard(complete_site, ["docs"]))
    text = PAGE_TEXT
    for patch in document["patches"][:done]:
        if patch["type"] == "create_file":
            (site / patch["path"]).write_text(patch["new_content"])
        else:
            text = patches.apply_patch_to_text(patch, text)
            (site / patch["path"]).write_text(text)

    patches.apply_bundle(document, WorktreeGuard(site, ["docs"]))

    for name in ("docs/_index.md", "docs/new.md"):
        assert (site / name).read_bytes() == (complete_site / name).read_bytes()


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (patches.make_create_patch("docs/_index.md", "other\n"), "FILE_EXISTS_CONFLICT"),
        (patches.make_range_patch("docs/none.md", "a\n", 1, 1, "c"), "FILE_MISSING"),
        (patches.make_delete_patch("docs/_index.md", "another text"), "HASH_MISMATCH"),
        (patches.make_range_patch("docs/_index.md", "a\nb\n", 1, 1, "c"), "HASH_MISMATCH"),
        (
            {**patches.make_anchor_patch("docs/_index.md", PAGE_TEXT, "Last", "x"), "anchor": "None"},
            "ANCHOR_MISSING",
        ),
        (
            {**patches.make_range_patch("docs/_index.md", PAGE_TEXT, 1, 1, "x"), "end_line": 99},
            "RANGE_OUT_OF_BOUNDS",
        ),
        (
            {**patches.make_range_patch("docs/_index.md", PAGE_TEXT, 1, 1, "x"), "new_content": "y"},
            "HASH_MISMATCH",
        ),
    ],
)
def test_a_patch_that_does_not_fit_is_a_conflict_and_nothing_is_written(
    site: Path, patch: dict[str, Any], reason: str
) -> None:
    document = patches.make_bundle([patches.make_create_patch("docs/new.md", "New.\n"), patch])
    fence = WorktreeGuard(site, ["docs"])

    with pytest.raises(ToolError) as caught:
        patches.apply_bundle(document, fence)

    conflict_rows = [conflict.as_json() for conflict in patches.find_conflicts(document, fence)]
    assert [conflict_row["reason"] for conflict_row in conflict_rows] == [reason]
    assert caught.value.details["error_code"] == "LINKER_PATCHER_CONFLICT_UNRESOLVABLE"
    assert caught.value.details["conflicts"] == conflict_rows
    artifacts.check_document("patch_conflicts.json", {"schema_version": "1.0", "conflicts": conflict_rows})
    assert sorted(path.name for path in (site / "docs").iterdir()) == ["_index.md"]
    assert (site / "docs/_index.md").read_text() == PAGE_TEXT


def test_a_path_outside_the_fence_stops_the_whole_bundle(site: Path) -> None:
    document = patches.make_bundle(
        [patches.make_create_patch("docs/new.md", "New.\n"), patches.make_create_patch("docs2/x.md", "x")]
    )

    with pytest.raises(ToolError) as caught:
        patches.apply_bundle(document, WorktreeGuard(site, ["docs"]))

    assert caught.value.code is ErrorCode.ALLOWED_PATHS_VIOLATION
    assert not (site / "docs/new.md").exists()


def test_an_empty_file_is_not_a_missing_one(site: Path) -> None:
    (site / "docs/empty.md").write_text("")
    document = patches.make_bundle([patches.make_delete_patch("docs/empty.md", "")])
    fence = WorktreeGuard(site, ["docs"])

    assert patches.find_conflicts(patches.make_bundle([patches.make_create_patch("docs/empty.md", "x")]), fence)
    patches.apply_bundle(document, fence)
    patches.apply_bundle(document, fence)
    assert not (site / "docs/empty.md").exists()


def test_text_goes_to_the_end_of_its_section_also_when_it_is_the_last() -> None:
    anchor_patch = patches.make_anchor_patch("p.md", PAGE_TEXT, "#last", "More.")

    assert patches.apply_patch_to_text(anchor_patch, PAGE_TEXT).endswith("## Last\n\nEnd.\n\nMore.\n")


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
    assert set_front_matter_keys(before, updates) == after


def test_front_matter_that_cannot_be_read_is_a_conflict(site: Path) -> None:
    with pytest.raises(patches.ConflictError) as caught:
        patches.make_front_matter_patch("docs/_index.md", "---\na: [\n---\n", {"a": 1})

    assert caught.value.reason == "FRONTMATTER_INVALID"


FRONT_MATTER_KEYS = st.sampled_from(["title", "weight", "draft", "tags"])
FRONT_MATTER_VALUES = (
    st.none()
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
    | st.integers()
    | st.booleans()
    | st.lists(st.text("ab: #", max_size=3), max_size=3)
)


@LAW_SETTINGS
@given(st.lists(st.dictionaries(FRONT_MATTER_KEYS, FRONT_MATTER_VALUES, min_size=1, max_size=3), max_size=3))
def test_whatever_is_set_reads_back_and_the_rest_stays(updates: list[dict[str, Any]]) -> None:
    text, front = PAGE_TEXT, dict(front_matter.parse_page(PAGE_TEXT).front)
    for update in updates:
        text = set_front_matter_keys(text, update)
        front.update(update)

    assert front_matter.parse_page(text).front == {k: v for k, v in front.items() if v is not None}
    assert front_matter.parse_page(text).body == front_matter.parse_page(PAGE_TEXT).body


LINE_LISTS = st.lists(st.text("ab ", max_size=4), min_size=1, max_size=6)


@LAW_SETTINGS
@given(LINE_LISTS, LINE_LISTS, st.data())
def test_a_range_is_replaced_as_lists_of_lines_are(lines: list[str], new: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(1, len(lines)))
    end = data.draw(st.integers(start - 1, len(lines)))
    before = "\n".join(lines) + "\n"

    patch = patches.make_range_patch("p", before, start, end, "\n".join(new) + "\n")

    expected = [*lines[: start - 1], *new, *lines[end:]]
    assert patches.apply_patch_to_text(patch, before) == "\n".join(expected) + "\n"


@pytest.mark.anyio
async def test_the_worktree_hash_knows_every_change_and_no_ignored_file(tmp_path: Path) -> None:
    repository = GitCheckout.create(tmp_path / "site")
    repository.commit(a__md="a", b__md="b", __gitignore="public/\n")
    root, env, base = repository.root, filter_git_environment(os.environ), repository.run_git("rev-parse", "HEAD")
    hashes = [await hash_worktree(root, base, env)]

    async def record_hash(expected: list[str]) -> None:
        hashes.append(await hash_worktree(root, base, env))
        assert await list_changed_paths(root, base, env) == expected

    (root / "c é.md").write_text("c")
    await record_hash(["c é.md"])
    (root / "a.md").write_text("A")
    await record_hash(["a.md", "c é.md"])
    (root / "b.md").unlink()
    await record_hash(["a.md", "b.md", "c é.md"])
    repository.run_git("add", "--all")
    assert await hash_worktree(root, base, env) == hashes[-1]
    (root / "public").mkdir()
    (root / "public/x").write_text("x")
    (root / ".c.md.cleats-part").write_text("half")
    assert await hash_worktree(root, base, env) == hashes[-1]
    (root / "c é.md").write_text("C")
    await record_hash(["a.md", "b.md", "c é.md"])

    assert len(set(hashes)) == len(hashes)
