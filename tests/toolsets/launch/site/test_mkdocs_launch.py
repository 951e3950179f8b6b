"""Tests of launches into MkDocs sites, with the real MkDocs: plan, gates, updates and the fence around the build."""

import asyncio
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.processes import process
from cleats.toolsets.launch.gates import mkdocs_build, registry
from cleats.toolsets.launch.profiles.model import load_named_profile
from cleats.toolsets.launch.site import detection, preview
from cleats.toolsets.launch.site.mkdocs_command import PYTHON_OPTIONS, RUNNER_PATH
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.workers import validate
from tests.support.launch_pipeline import Pipeline
from tests.support.launch_sites import MKDOCS_CONFIG, commit_folder, copy_sample, write_mkdocs_site

PROFILE = load_named_profile("plain-mkdocs")
PAGES = "docs/measurekit"
NEW_NAV_LINES = """\
  - measurekit:
      - measurekit/index.md
      - measurekit/installation.md
      - measurekit/getting-started.md
      - measurekit/developer-guide.md
      - measurekit/reference/index.md
"""


def build_run(root: Path, name: str = "run", **values: Any) -> Pipeline:
    """Build a run with the profile `plain` on the source and the site below a folder."""
    config: dict[str, Any] = {"family": "measurekit", "required_sections": ["docs", "reference"], **values}
    return Pipeline(root / name, root / "source", root / "site", **{"profile": "plain", **config})


def prepare_inputs(root: Path, config: str = MKDOCS_CONFIG) -> Path:
    copy_sample(root / "source", "source")
    write_mkdocs_site(root / "site", config)
    commit_folder(root / "site")
    return root


@pytest.fixture(scope="module")
def shared_launch(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    root = prepare_inputs(tmp_path_factory.mktemp("launch"))
    return build_run(root, allow_manual_edits=True).run_all()


@pytest.fixture
def launched(shared_launch: Pipeline, tmp_path: Path) -> Pipeline:
    """Return the shared run with a worktree of its own, which the test may change."""
    run = object.__new__(Pipeline)
    run.__dict__.update(shared_launch.__dict__)
    shutil.copytree(shared_launch.folder.root, tmp_path / "run", symlinks=True)
    run.folder = type(shared_launch.folder)(tmp_path / "run")
    run.facts, run.inputs, run.events = dict(run.facts), dict(run.inputs), []
    return run


def edit_file(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, path
    path.write_text(text.replace(old, new), encoding="utf-8")


def list_issues(run: Pipeline) -> list[tuple[str, str, str]]:
    """Validate a run; return the gate, severity and message of every issue."""
    report = run.run_steps("validate:1").read_json("validation_report.json")
    return [(issue["gate"], issue["severity"], issue["message"]) for issue in report["issues"]]


def test_a_package_is_launched_into_a_site_whose_kind_is_found_out_and_passes_every_gate(launched: Pipeline) -> None:
    issues = list_issues(launched)

    report = launched.read_json("validation_report.json")
    assert report["ok"], issues
    assert {gate["name"] for gate in report["gates"]} >= {"mkdocs_config", "mkdocs_build", "internal_links"}
    assert not any(gate["name"].startswith("hugo") for gate in report["gates"])
    assert report["toolchain"].keys() == {"mkdocs"}
    assert (launched.site / "mkdocs.yml").read_text() == MKDOCS_CONFIG.replace(
        "   # written by Ann\n", f"   # written by Ann\n{NEW_NAV_LINES}"
    )
    assert {page["output_path"]: page["url_path"] for page in launched.read_json("page_plan.json")["pages"]} == {
        f"{PAGES}/index.md": "/kits/measurekit/",
        f"{PAGES}/installation.md": "/kits/measurekit/installation/",
        f"{PAGES}/getting-started.md": "/kits/measurekit/getting-started/",
        f"{PAGES}/developer-guide.md": "/kits/measurekit/developer-guide/",
        f"{PAGES}/reference/index.md": "/kits/measurekit/reference/",
    }
    assert (
        (launched.site / f"{PAGES}/installation.md")
        .read_text()
        .startswith(
            "---\ntitle: Install measurekit\ndescription: What measurekit needs and how to install it.\n---\n\n"
            "# Install measurekit\n\n"
        )
    )
    assert "](../installation.md)" in (launched.site / f"{PAGES}/reference/index.md").read_text()


def test_what_a_run_may_change_follows_from_the_kind_of_the_site(launched: Pipeline) -> None:
    assert launched.config["allowed_paths"] == ["content/docs/measurekit", "content/reference/measurekit"]
    assert launched.build_job("look").config["allowed_paths"] == ["docs/measurekit", "mkdocs.yml"]
    assert launched.build_job("look").config["profile"] == "plain-mkdocs"
    assert launched.read_json("site_context.json")["mkdocs"] == {
        "config_path": "mkdocs.yml",
        "docs_dir": "docs",
        "has_nav": True,
    }


def test_a_site_without_a_navigation_in_another_folder_keeps_its_configuration(tmp_path: Path) -> None:
    root = prepare_inputs(tmp_path, "site_name: Packages\ndocs_dir: pages\nuse_directory_urls: false\n")
    (root / "site/docs").rename(root / "site/pages")
    commit_folder(root / "site")

    run = build_run(root, profile="plain-mkdocs").run_all()

    assert list_issues(run) == []
    assert run.build_job("look").config["allowed_paths"] == ["pages/measurekit"]
    assert (run.site / "mkdocs.yml").read_text().startswith("site_name: Packages\ndocs_dir: pages\n")
    assert (run.site / "pages/measurekit/.cleats-launch.json").is_file()


def test_allowed_paths_of_the_configuration_stay_and_pages_that_the_navigation_lacks_are_a_warning(
    tmp_path: Path,
) -> None:
    run = build_run(prepare_inputs(tmp_path), allowed_paths=["docs/measurekit"]).run_all()

    issues = list_issues(run)

    assert (run.site / "mkdocs.yml").read_text() == MKDOCS_CONFIG
    assert len(issues) == 5
    assert set(issues) >= {("mkdocs_config", "warn", f"the navigation does not list the page {PAGES}/installation.md")}


@pytest.mark.parametrize(
    ("files", "profile", "expected"),
    [
        ({"mkdocs.yml": "", "hugo.toml": ""}, "plain", "plain"),
        ({"mkdocs.yml": "", "hugo.toml": ""}, "plain-mkdocs", "plain-mkdocs"),
        ({"mkdocs.yaml": ""}, "plain", "plain-mkdocs"),
        ({"README.md": ""}, "plain", "plain"),
        ({"mkdocs.yml": ""}, "aspose", "aspose"),
    ],
)
def test_the_first_profile_whose_configuration_the_site_has_is_used(
    tmp_path: Path, files: dict[str, str], profile: str, expected: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    config = {"profile": profile, "family": "kit", "required_sections": ["docs"]}

    assert detection.choose_profile(config, CheckoutTree(tmp_path), ()).name == expected


def test_a_broken_link_is_found_by_the_build_and_the_link_gate_and_is_fixed(launched: Pipeline) -> None:
    page = launched.site / f"{PAGES}/getting-started.md"
    edit_file(page, "(developer-guide.md)", "(developers-guide.md)")
    edit_file(page, "(reference/index.md)", "(reference/index.md#no-such-name)")

    issues = list_issues(launched)

    assert [(gate, severity) for gate, severity, _ in issues if gate in ("mkdocs_build", "internal_links")] == [
        ("internal_links", "error"),
        ("internal_links", "error"),
        ("mkdocs_build", "error"),
    ]
    launched.run_steps("fix:1", "apply:fix:1", "fix:2", "apply:fix:2")
    text = page.read_text()
    assert "(developer-guide.md)" in text
    assert "(reference/index.md)" in text


def test_warnings_about_pages_of_others_do_not_stop_a_launch(tmp_path: Path) -> None:
    root = prepare_inputs(tmp_path)
    edit_file(root / "site/docs/about/index.md", "We write", "[Nowhere](nowhere.md). We write")
    commit_folder(root / "site")

    issues = list_issues(build_run(root).run_all())

    assert [(gate, severity) for gate, severity, _ in issues] == [("mkdocs_build", "info")]
    assert "nowhere.md" in issues[0][2]


@pytest.mark.parametrize(
    "setting",
    [
        "hooks: [docs/evil.py]",
        "plugins: [{gen-files: {scripts: [docs/evil.py]}}]",
        "extra: {a: !!python/object/apply:os.system ['touch {marker}']}",
        "theme: {name: mkdocs, custom_dir: docs}",
    ],
)
def test_a_hostile_configuration_is_refused_and_runs_nothing(launched: Pipeline, setting: str) -> None:
    marker = launched.folder.root / "marker"
    edit_file(launched.site / "mkdocs.yml", "theme: readthedocs", setting.replace("{marker}", str(marker)))
    (launched.site / "docs/evil.py").write_text(f"open({str(marker)!r}, 'w')\n")
    (launched.site / "docs/main.html").write_text("{{ cycler.__init__.__globals__.os.mkdir('" + str(marker) + "') }}")

    issues = list_issues(launched)

    refused = {(gate, severity) for gate, severity, _ in issues if gate.startswith("mkdocs")}
    assert refused == {("mkdocs_config", "blocker"), ("mkdocs_build", "blocker")}
    assert not marker.exists()


@pytest.mark.parametrize("target", ["/etc", "/etc/hostname", "../.git/config", "about", "nowhere"])
def test_a_link_in_the_pages_is_refused_where_mkdocs_would_publish_what_it_leads_to(
    launched: Pipeline, target: str
) -> None:
    (launched.site / "docs/secrets").symlink_to(target)

    site = anyio.run(validate.survey_site, launched.build_job("look"), PROFILE, launched.folder.root / "work/scratch")
    verdict = anyio.run(mkdocs_build.check_mkdocs_build, site)

    assert [(draft.severity, draft.path) for draft in verdict if not isinstance(draft, str)] == [
        ("blocker", "docs/secrets")
    ]


def test_a_page_may_be_a_link_to_another_file_of_the_site(tmp_path: Path) -> None:
    root = prepare_inputs(tmp_path)
    (root / "site/README.md").write_text("# All about it\n")
    (root / "site/docs/readme-copy.md").symlink_to("../README.md")
    (root / "site/latest").symlink_to("docs")
    commit_folder(root / "site")

    assert list_issues(build_run(root).run_all()) == []


FENCE_PROBE = """
import importlib.util, os, socket, subprocess, sys
spec = importlib.util.spec_from_file_location("runner", sys.argv[1])
runner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runner)
site, scratch, outside = sys.argv[2:5]
runner.install_fence(site, scratch)
attempts = {
    "read site": lambda: open(f"{site}/a.md").read(),
    "write scratch": lambda: open(f"{scratch}/b", "w").close(),
    "write site": lambda: open(f"{site}/a.md", "w"),
    "read outside": lambda: open(f"{outside}/c").read(),
    "read through a link": lambda: open(f"{site}/link").read(),
    "remove outside": lambda: os.remove(f"{outside}/c"),
    "make outside": lambda: os.mkdir(f"{outside}/d"),
    "program": lambda: subprocess.run(["true"]),
    "shell": lambda: os.system("true"),
    "fork": lambda: os._exit(0) if os.fork() == 0 else None,
    "connect": lambda: socket.socket().connect(("127.0.0.1", 9)),
    "look up": lambda: socket.getaddrinfo("example.org", 80),
    "serve others": lambda: socket.socket().bind(("0.0.0.0", 0)),
    "serve this machine": lambda: socket.socket().bind(("127.0.0.1", 0)),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "allowed")
    except PermissionError as error:
        print(name, "refused" if "not allowed in a build" in str(error) else error)
"""


def test_the_fence_allows_a_build_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    site, scratch, outside = (tmp_path / name for name in ("site", "scratch", "outside"))
    for folder in (site, scratch, outside):
        folder.mkdir()
    (site / "a.md").write_text("# A\n")
    (outside / "c").write_text("secret")
    (site / "link").symlink_to(outside / "c")

    completed = subprocess.run(
        [sys.executable, *PYTHON_OPTIONS, "-c", FENCE_PROBE, str(RUNNER_PATH), str(site), str(scratch), str(outside)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    verdicts = dict(line.rsplit(" ", 1) for line in completed.stdout.splitlines())
    allowed = {name for name, verdict in verdicts.items() if verdict == "allowed"}
    assert allowed == {"read site", "write scratch", "serve this machine"}
    assert set(verdicts.values()) == {"allowed", "refused"}
    assert (outside / "c").read_text() == "secret"


def test_an_update_keeps_edits_and_brings_the_navigation_up_to_date(tmp_path: Path) -> None:
    root = prepare_inputs(tmp_path)
    first = build_run(root, "first").run_all()
    shutil.rmtree(root / "site")
    shutil.copytree(first.site, root / "site", ignore=shutil.ignore_patterns(".git"))
    edit_file(root / "site" / PAGES / "index.md", "## Pages", "Ask Ann for help.\n\n## Pages")
    edit_file(
        root / "site/mkdocs.yml", "      - measurekit/installation.md", "      - Setup: measurekit/installation.md"
    )
    edit_file(root / "site/mkdocs.yml", "      - measurekit/reference/index.md\n", "")
    commit_folder(root / "site")
    edit_file(root / "source/README.md", "- Format a quantity", "- Round quantities to a step.\n- Format a quantity")

    second = build_run(root, "second").run_all()

    assert list_issues(second) == [
        ("mkdocs_config", "warn", f"the navigation does not list the page {PAGES}/reference/index.md")
    ]
    text = (second.site / PAGES / "index.md").read_text()
    assert "Ask Ann for help." in text
    assert "- Round quantities to a step." in text
    assert (second.site / "mkdocs.yml").read_text() == (root / "site/mkdocs.yml").read_text()
    updates = {page["path"]: page["change"] for page in second.read_json("page_updates.json")["pages"]}
    assert updates[f"{PAGES}/index.md"] == "changed"
    assert updates[f"{PAGES}/installation.md"] == "unchanged"


def test_the_preview_serves_the_built_pages_below_the_address_of_the_site(launched: Pipeline) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"git_env": dict(os.environ)}
    command = preview.plan_preview(launched.config, launched.folder.root, settings, port)

    async def fetch_page() -> str:
        async with process.start_command(command.argv, cwd=launched.folder.root, env=command.env):
            with anyio.fail_after(60):
                while True:
                    try:
                        reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    except OSError:
                        await anyio.sleep(0.05)
                        continue
                    writer.write(b"GET /kits/measurekit/installation/ HTTP/1.0\r\n\r\n")
                    page = await reader.read()
                    writer.close()
                    return page.decode()

    page = anyio.run(fetch_page)

    assert command.address == f"http://127.0.0.1:{port}/kits/"
    assert "pip install measurekit" in page
    assert "Who we are" in page, "the navigation of the site is on the page"


def test_the_preview_of_a_hostile_site_is_refused(launched: Pipeline) -> None:
    edit_file(launched.site / "mkdocs.yml", "theme: readthedocs", "hooks: [evil.py]")

    with pytest.raises(ToolError, match="hooks is not allowed") as caught:
        preview.plan_preview(launched.config, launched.folder.root, {}, 8000)

    assert caught.value.code is ErrorCode.ILLEGAL_STATE


def test_without_mkdocs_validations_and_previews_say_how_to_install_it(
    launched: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mkdocs" else find_spec(name))

    with pytest.raises(ToolError) as of_gates:
        anyio.run(registry.require_programs, [registry.load_gate("mkdocs_build")], {}, "local")
    with pytest.raises(ToolError) as of_preview:
        preview.plan_preview(launched.config, launched.folder.root, {}, 8000)

    assert {of_gates.value.code, of_preview.value.code} == {ErrorCode.TOOLCHAIN_MISSING}
    assert "mkdocs is not installed" in of_gates.value.message
    assert "mkdocs" in of_preview.value.hint
    assert of_gates.value.hint == of_preview.value.hint
