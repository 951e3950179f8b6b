"""Tests of updates: a later launch of the same product changes what is new and keeps what people wrote."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.patching.launch_records import RECORD_FILE_NAME
from cleats.toolsets.launch.patching.merging import digest_lines, merge_page
from cleats.toolsets.launch.workers.publish import read_change
from tests.support.launch_pipeline import Pipeline
from tests.support.launch_sites import commit_folder, copy_sample
from tests.support.shell import LAW_SETTINGS

SECTIONS = ["docs", "reference"]
DOCS, REFERENCE = "content/docs/measurekit", "content/reference/measurekit"

EDITS: tuple[tuple[str, str, str], ...] = (
    (f"{DOCS}/_index.md", "title: measurekit\n", "title: Measure Kit for Python\n"),
    (f"{DOCS}/_index.md", "\n## Pages\n", "\nAsk in the forum when something is missing.\n\n## Pages\n"),
    (f"{DOCS}/_index.md", "This documentation covers the", "This documentation, kept by the docs team, covers the"),
    (
        f"{DOCS}/installation.md",
        "This page lists the requirements of measurekit and the commands that install it.\n\n",
        "",
    ),
    (f"{DOCS}/installation.md", "pip install measurekit\n", "python -m pip install --user measurekit\n"),
    (f"{DOCS}/installation.md", "\n## Next steps\n", "\n- On Windows, use 12 GB of `pagefile`.\n\n## Next steps\n"),
    (f"{DOCS}/getting-started.md", "weight: 30\n", "weight: 30\ntags:\n- start\n"),
    (f"{DOCS}/getting-started.md", "## More of it\n", "## Read text\n"),
    (
        f"{DOCS}/developer-guide.md",
        "This guide shows how to use measurekit, task by task.\n",
        "A guide, reviewed by Ann.\n",
    ),
    (f"{REFERENCE}/_index.md", "\n## Errors\n", "\nEvery function is thread-safe in our tests.\n\n## Errors\n"),
)
"""Ten edits of people: changed, added and removed lines, in prose, code, headings and front matter."""


def build_run(root: Path, name: str, **values: Any) -> Pipeline:
    """Build a run on the source and the site below a folder, with a folder of its own: another machine."""
    config: dict[str, Any] = {"profile": "plain", "family": "measurekit", "required_sections": SECTIONS, **values}
    return Pipeline(root / name, root / "source", root / "site", **config)


def merge_request(run: Pipeline, site: Path) -> None:
    """Commit the pages of a run to the site as a squash does: nothing else of the run is left."""
    for path in ("content", "hugo.toml"):
        if (site / path).is_dir():
            shutil.rmtree(site / path)
            shutil.copytree(run.site / path, site / path)
    commit_folder(site)


def edit_pages(site: Path, edits: tuple[tuple[str, str, str], ...] = EDITS) -> None:
    for path, old, new in edits:
        text = (site / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
        (site / path).write_text(text.replace(old, new), encoding="utf-8")
    commit_folder(site)


NEWER_SOURCE = (
    ("README.md", "- Format a quantity", "- Round quantities to the nearest step.\n- Format a quantity"),
    ("README.md", "Python 3.10 or later", "Python 3.11 or later"),
    ("pyproject.toml", 'requires-python = ">=3.10"', 'requires-python = ">=3.11"'),
)


def change_source(source: Path) -> None:
    """Change what the source says about itself: one more feature, and a newer Python."""
    for path, old, new in NEWER_SOURCE:
        text = (source / path).read_text(encoding="utf-8")
        assert old in text, path
        (source / path).write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def launched(tmp_path: Path) -> Path:
    """Prepare a source, and a site with its merged first launch."""
    copy_sample(tmp_path / "source", "source")
    copy_sample(tmp_path / "site", "site")
    commit_folder(tmp_path / "site")
    merge_request(build_run(tmp_path, "first").run_all(), tmp_path / "site")
    return tmp_path


def read_site(site: Path) -> dict[str, str]:
    return {path.relative_to(site).as_posix(): path.read_text() for path in (site / "content").rglob("*.md")}


def test_an_update_after_ten_edits_and_a_newer_commit_loses_no_edit_and_passes_every_gate(launched: Path) -> None:
    edit_pages(launched / "site")
    change_source(launched / "source")

    run = build_run(launched, "second").run_all().run_steps("validate:1")

    pages = read_site(run.site)
    for path, old, new in EDITS:
        kept = [line for line in new.split("\n") if line.strip()]
        assert all(line in pages[path].split("\n") or line in pages[path] for line in kept), (path, new)
        if not new:
            assert old.strip() not in pages[path], path
    assert "- Round quantities to the nearest step." in pages[f"{DOCS}/_index.md"]
    assert "requires Python 3.11 or later" in pages[f"{DOCS}/installation.md"]
    assert "3.10" not in pages[f"{DOCS}/installation.md"]
    report = run.read_json("validation_report.json")
    assert report["ok"], report["issues"]
    updates = {update["path"]: update for update in run.read_json("page_updates.json")["pages"]}
    assert {path: update["change"] for path, update in updates.items()} == {
        f"{DOCS}/_index.md": "changed",
        f"{DOCS}/developer-guide.md": "unchanged",
        f"{DOCS}/getting-started.md": "unchanged",
        f"{DOCS}/installation.md": "changed",
        f"{REFERENCE}/_index.md": "unchanged",
    }
    assert not any(update.get("conflicts") for update in updates.values())


def test_an_update_of_an_unchanged_source_changes_nothing(launched: Path) -> None:
    edit_pages(launched / "site")
    before = read_site(launched / "site")
    (launched / "source/NOTES.txt").write_text("No page says this.\n")

    run = build_run(launched, "second").run_all()

    assert run.read_json("patch_bundle.json")["patches"] == []
    assert read_site(run.site) == before


def test_the_text_of_people_stays_where_the_source_changed_the_same_lines(launched: Path) -> None:
    path = f"{DOCS}/installation.md"
    drafted = next(line for line in read_site(launched / "site")[path].split("\n") if "3.10" in line)
    edit_pages(launched / "site", ((path, drafted, "- Any Python from 3.10 on."),))
    change_source(launched / "source")

    run = build_run(launched, "second").run_all().run_steps("validate:1")
    body = run.read_json("page_updates.json")

    [update] = [entry for entry in body["pages"] if entry["path"] == path]
    [conflict] = update["conflicts"]
    page = (run.site / path).read_text().split("\n")
    assert page[conflict["line"] - 1] == conflict["kept"] == "- Any Python from 3.10 on."
    assert "3.11" in conflict["drafted"]
    assert run.read_json("validation_report.json")["ok"]


def test_a_third_run_still_knows_the_edits_and_the_settled_conflict(launched: Path) -> None:
    edit_pages(launched / "site")
    change_source(launched / "source")
    merge_request(build_run(launched, "second").run_all(), launched / "site")
    merged = read_site(launched / "site")

    run = build_run(launched, "third").run_all()

    assert read_site(run.site) == merged
    assert run.read_json("patch_bundle.json")["patches"] == []


async def read_body(run: Pipeline) -> str:
    return (await read_change(run.build_job("commit"))).body


def test_the_request_says_what_is_new_what_was_kept_and_what_conflicts(launched: Path) -> None:
    path = f"{DOCS}/installation.md"
    drafted = next(line for line in read_site(launched / "site")[path].split("\n") if "3.10" in line)
    edit_pages(launched / "site", ((path, drafted, "- Any Python from 3.10 on."),))
    first_sha = json.loads((launched / "site" / DOCS / RECORD_FILE_NAME).read_text())["pages"]["_index.md"]["repo_sha"]
    change_source(launched / "source")
    run = build_run(launched, "second").run_all().run_steps("validate:1")

    body = anyio.run(read_body, run)

    assert f"since {first_sha[:12]}" in body
    assert "+ `` Round quantities to the nearest step. ``" in body
    assert f"`{DOCS}/_index.md`: changed" in body
    assert "Edits by people on 1 pages were kept." in body
    assert re.search(rf"## Conflicts\n.*`{path}:\d+`\n\n````diff\n-.*3\.11.*\n\+- Any Python", body, re.DOTALL)


def test_a_page_that_the_source_no_longer_supports_is_removed_unless_people_edited_it(launched: Path) -> None:
    site = launched / "site"
    record_path = site / DOCS / RECORD_FILE_NAME
    record = json.loads(record_path.read_text())
    for name in ("plain.md", "edited.md"):
        text = f"---\ntitle: {name}\n---\n\nAn old page.\n"
        (site / DOCS / name).write_text(text)
        record["pages"][name] = {**record["pages"]["_index.md"], "lines": "".join(digest_lines(text))}
    record_path.write_text(json.dumps(record))
    (site / DOCS / "edited.md").write_text((site / DOCS / "edited.md").read_text() + "\nKept by Ann.\n")
    commit_folder(site)

    run = build_run(launched, "second").run_all()

    changes = {update["path"]: update["change"] for update in run.read_json("page_updates.json")["pages"]}
    assert (changes[f"{DOCS}/plain.md"], changes[f"{DOCS}/edited.md"]) == ("removed", "obsolete")
    assert not (run.site / DOCS / "plain.md").exists()
    assert "Kept by Ann." in (run.site / DOCS / "edited.md").read_text()
    recorded = json.loads((run.site / DOCS / RECORD_FILE_NAME).read_text())["pages"]
    assert "plain.md" not in recorded
    assert "edited.md" in recorded


@pytest.mark.parametrize("damage", ["missing", "not JSON", '{"schema_version": "1.0", "pages": {"_index.md": 3}}'])
def test_without_a_usable_record_existing_pages_are_a_conflict(launched: Path, damage: str) -> None:
    for folder in (DOCS, REFERENCE):
        record_path = launched / "site" / folder / RECORD_FILE_NAME
        record_path.unlink() if damage == "missing" else record_path.write_text(damage)
    edit_pages(launched / "site")
    run = build_run(launched, "second").run_steps("clone", "inventory", "facts", "snippets", "plan")
    run.run_steps("draft:docs", "draft:reference")

    with pytest.raises(ToolError) as caught:
        run.run_steps("link")

    reasons = {conflict["reason"] for conflict in (caught.value.details or {})["conflicts"]}
    assert reasons == {"FILE_EXISTS_CONFLICT"}


LINES = st.lists(st.sampled_from([*"abcdefgh", ""]), max_size=12)


@LAW_SETTINGS
@given(base=LINES, draft=LINES, page=LINES)
def test_a_merge_keeps_every_line_that_people_added(base: list[str], draft: list[str], page: list[str]) -> None:
    marked_page = [f"{line}!" if number % 3 == 0 else line for number, line in enumerate(page)]
    base_text, draft_text, page_text = ("\n".join(lines) + "\n" for lines in (base, draft, marked_page))

    merged = merge_page(digest_lines(base_text), draft_text, page_text)

    merged_lines = merged.text.split("\n")
    added = [line for line in marked_page if line.endswith("!")]
    assert [line for line in merged_lines if line.endswith("!")] == added
    for conflict in merged.conflicts:
        kept = conflict.kept.split("\n") if conflict.kept else []
        assert merged_lines[conflict.line - 1 : conflict.line - 1 + len(kept)] == kept


@LAW_SETTINGS
@given(base=LINES, other=LINES)
def test_a_side_without_changes_takes_the_other(base: list[str], other: list[str]) -> None:
    base_text, other_text = "\n".join(base) + "\n", "\n".join(other) + "\n"
    digests = digest_lines(base_text)

    assert merge_page(digests, other_text, base_text).text == other_text
    assert merge_page(digests, base_text, other_text).text == other_text
    assert merge_page(digests, other_text, other_text).text == other_text
