"""Tests of the gates that look at the whole site: its changes, its build, its links."""

import base64
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from cleats.toolsets.launch.gates import hugo_build, internal_links
from cleats.toolsets.launch.gates.model import IssueDraft
from cleats.toolsets.launch.gates.site import BuiltSite, LaunchSite
from cleats.toolsets.launch.site.hugo_command import HUGO_SANDBOX_VARIABLES, list_source_options
from tests.support.gates import (
    GUIDE_PATH,
    INSTALLATION_PATH,
    SITE_FILES,
    START_PATH,
    GateRun,
    create_gate_run,
    render_page,
)


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> GateRun:
    return create_gate_run(tmp_path_factory.mktemp("launch"))


@pytest.fixture
def editable_launch(launch: GateRun) -> Iterator[GateRun]:
    """Yield the shared launch; afterwards undo what the test did to a page."""
    before = {path: (launch.job.site / path).read_bytes() for path in (GUIDE_PATH, START_PATH, INSTALLATION_PATH)}
    yield launch
    for path, data in before.items():
        launch.write_file(path, data)


def test_what_lies_outside_the_allowed_paths_is_found_component_by_component(
    tmp_path: Path,
) -> None:
    launch = create_gate_run(tmp_path)
    launch.write_file("content/docs/shelf-extra/a.md", render_page("A", "Text."))
    launch.write_file("hugo.toml", "title = 'Mine'\n")
    (launch.job.site / "static/logo.svg").unlink()

    assert launch.list_issues("allowed_paths") == [
        ("GATE_PATH_OUTSIDE", "content/docs/shelf-extra/a.md", 0),
        ("GATE_PATH_OUTSIDE", "hugo.toml", 0),
        ("GATE_PATH_OUTSIDE", "static/logo.svg", 0),
    ]


def test_only_plain_text_files_pass(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path)
    folder = launch.job.site / "content/docs/shelf"
    (folder / "link.md").symlink_to(folder / "installation.md")
    launch.write_file("content/docs/shelf/data.md", b"a\0b")
    launch.write_file("content/docs/shelf/latin.md", "caf\xe9".encode("latin-1"))
    launch.write_file("content/docs/shelf/run.md", "Text.\n")
    (folder / "run.md").chmod(0o755)

    assert launch.list_issues("allowed_paths") == [
        ("GATE_PATH_BINARY", "content/docs/shelf/data.md", 0),
        ("GATE_PATH_BINARY", "content/docs/shelf/latin.md", 0),
        ("GATE_PATH_NOT_A_FILE", "content/docs/shelf/link.md", 0),
        ("GATE_PATH_EXECUTABLE", "content/docs/shelf/run.md", 0),
    ]


def test_budgets_are_kept(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path, config={"budgets": {"max_files_changed": 4, "max_lines_per_file": 30}})
    launch.write_file(GUIDE_PATH, render_page("A", "x\n" * 26))
    launch.write_file(INSTALLATION_PATH, render_page("A", "x\n" * 25))  # as many as there may be
    launch.write_file(START_PATH, render_page("A", "x" * 500_001))

    assert launch.list_issues("budgets") == [
        ("GATE_BUDGET_FILES", "", 0),
        ("GATE_BUDGET_LINES", GUIDE_PATH, 0),
        ("GATE_BUDGET_BYTES", START_PATH, 0),
    ]


def test_a_section_that_no_configuration_covers_is_a_blocker(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path)
    (launch.job.site / "hugo.toml").unlink()

    issues = launch.run_gate("hugo_config").issues

    assert [issue.error_code for issue in issues] == ["GATE_HUGO_CONFIG_MISSING"] * 2
    assert "looked for hugo.toml" in issues[0].message


CONFIG_CASES = [
    ("baseURL = [\n", "GATE_HUGO_CONFIG_INVALID"),
    ("title = 'x'\n", "GATE_HUGO_CONFIG_BASE"),
    ("baseURL = 'https://x/'\ncontentDir = '/etc'\n", "GATE_HUGO_CONFIG_OUTSIDE"),
    ("baseURL = 'https://x/'\nstaticDir = ['static', '../../..']\n", "GATE_HUGO_CONFIG_OUTSIDE"),
    (
        "baseURL = 'https://x/'\n[[module.mounts]]\nsource = '/etc'\ntarget = 'static'\n",
        "GATE_HUGO_CONFIG_OUTSIDE",
    ),
    (
        "baseURL = 'https://x/'\n[languages.de]\ncontentDir = '../../../x'\n",
        "GATE_HUGO_CONFIG_OUTSIDE",
    ),
]


@pytest.mark.parametrize(("text", "code"), CONFIG_CASES)
def test_a_configuration_parses_and_keeps_to_the_site(launch: GateRun, text: str, code: str) -> None:
    launch.write_file("hugo.toml", text)
    try:
        assert launch.list_issues("hugo_config") == [(code, "hugo.toml", 0)]
    finally:
        launch.write_file("hugo.toml", SITE_FILES["hugo.toml"])


def test_a_folder_of_configuration_is_read_as_hugo_reads_it() -> None:
    assert "--configDir config" in " ".join(list_source_options(Path("s"), "config/_default/hugo.toml", "production"))
    assert "--config configs/x/3d.toml" in " ".join(list_source_options(Path("s"), "configs/x/3d.toml", "production"))


def build_site(launch: GateRun) -> tuple[LaunchSite, list[IssueDraft], list[str]]:
    async def run_build() -> tuple[LaunchSite, list[IssueDraft], list[str]]:
        site = await launch.open_site()
        site.scratch.mkdir(parents=True, exist_ok=True)
        answers = await hugo_build.check_hugo_build(site)
        findings = [answer for answer in answers if isinstance(answer, IssueDraft)]
        return site, findings, [answer for answer in answers if isinstance(answer, str)]

    return anyio.run(run_build)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    """Build the site once for every test that only reads the output."""
    site, findings, _ = build_site(create_gate_run(tmp_path_factory.mktemp("built")))
    assert findings == []
    return site.built_sites["hugo"]


PIXEL_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)


def test_a_build_leaves_the_worktree_as_it_was(tmp_path: Path) -> None:
    """Check this also when the site resizes images and writes statistics."""
    layout = "{{ with resources.Get `a.png` }}{{ (.Resize `1x`).RelPermalink }}{{ end }}"
    stats = "[build.buildStats]\nenable = true\n"
    launch = create_gate_run(
        tmp_path,
        site={
            "hugo.toml": SITE_FILES["hugo.toml"] + stats,
            "layouts/_default/single.html": layout + SITE_FILES["layouts/_default/single.html"],
        },
    )
    launch.write_file("assets/a.png", PIXEL_PNG)

    site, findings, _ = build_site(launch)

    assert findings == []
    assert anyio.run(launch.open_site).changes == site.changes
    assert any(file.startswith("a_hu") for file in site.built_sites["hugo"].files)
    assert {"docs/shelf/index.html", "docs/shelf/installation/index.html"} <= site.built_sites["hugo"].files


def test_the_output_answers_as_a_web_server_does(output: BuiltSite) -> None:
    assert output.find_file("/docs/shelf/") == "docs/shelf/index.html"
    assert output.find_file("/docs/shelf") == "docs/shelf/index.html"
    assert output.find_file("/logo.svg") == "logo.svg"
    assert output.find_file("/docs/Shelf/") is None
    assert output.find_file_ignoring_case("/docs/Shelf/") == "docs/shelf/index.html"
    assert output.find_file("/../etc/passwd") is None
    assert "requirements" in output.list_anchors("docs/shelf/installation/index.html")


def test_a_site_below_a_path_is_looked_up_below_it(output: BuiltSite) -> None:
    below = replace(output, base_path="/base/")

    assert below.find_file("/base/docs/shelf/") == "docs/shelf/index.html"
    assert below.find_file("/base") == "index.html"
    assert below.find_file("/docs/shelf/") is None


HOSTILE_TEMPLATES = {
    "env": "{{ os.Getenv `HOME` }}",
    "network": "{{ with resources.GetRemote `http://127.0.0.1:9/x` }}{{ .Content }}{{ end }}",
    "exec": "{{ (resources.FromString `a.css` `a{}` | css.PostCSS).Content }}",
}


@pytest.mark.parametrize("kind", HOSTILE_TEMPLATES)
def test_a_hostile_site_gets_no_program_no_environment_and_no_network(tmp_path: Path, kind: str) -> None:
    allow = (
        "[security.exec]\nallow = ['.*']\nosEnv = ['.*']\n[security.funcs]\ngetenv = ['.*']\n"
        "[security.http]\nurls = ['.*']\nmethods = ['.*']\n"
    )
    launch = create_gate_run(
        tmp_path,
        site={
            "hugo.toml": SITE_FILES["hugo.toml"] + allow,
            "layouts/_default/single.html": HOSTILE_TEMPLATES[kind],
            "postcss.config.js": "module.exports = {}\n",
        },
    )

    _, findings, log = build_site(launch)

    assert findings[0].kind.code == "GATE_HUGO_BUILD_FAILED"
    assert str(tmp_path) not in "\n".join([*log, *(finding.message for finding in findings)])
    assert any(word in findings[0].message for word in ("access denied", "not whitelisted", "security"))


def test_a_page_that_does_not_build_is_named_with_its_file(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path)
    launch.write_file(GUIDE_PATH, render_page("Guide", 'See [x]({{< ref "nowhere.md" >}}).'))

    _, findings, _ = build_site(launch)

    assert {finding.kind.code for finding in findings} == {"GATE_HUGO_BUILD_FAILED"}
    assert any(GUIDE_PATH in (finding.path, finding.message) or "nowhere.md" in finding.message for finding in findings)


def test_what_hugo_warns_of_is_a_warning(tmp_path: Path) -> None:
    layout = "{{ warnf `mind %s` .Path }}{{ .Content }}"
    other = "---\ntitle: Other\n---\n\nText.\n"
    launch = create_gate_run(
        tmp_path,
        site={"layouts/_default/single.html": layout, "content/docs/other/a.md": other},
    )

    _, findings, log = build_site(launch)

    assert {finding.kind.code for finding in findings} == {"GATE_HUGO_BUILD_WARNING"}
    assert [(finding.severity, finding.message) for finding in findings] == [
        ("info", "mind /docs/other/a"),
        *(("warn", f"mind /docs/shelf/{name}") for name in ("developer-guide", "getting-started", "installation")),
    ]
    assert log[1:] == sorted(log[1:])


def test_a_planned_page_that_comes_out_elsewhere_is_an_error(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path)
    launch.write_file(GUIDE_PATH, render_page("Guide\nurl: /elsewhere/", "Text."))
    launch.write_file(START_PATH, render_page("Start", "[x](../installation.md) and [y](installation.md)"))

    site, findings, _ = build_site(launch)

    assert [(finding.kind.code, finding.path) for finding in findings] == [("GATE_HUGO_BUILD_ADDRESS", GUIDE_PATH)]
    # A link to a source file is wrong too, unless the site makes an address of it.
    links = check_links(launch, site.built_sites["hugo"])
    assert links.count(("GATE_LINK_BROKEN", 6)) == 2


def test_a_link_in_the_site_or_a_folder_outside_it_stops_the_build(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path / "one")
    (launch.job.site / "content/docs/shelf/x.md").symlink_to("/etc/passwd")
    outside = create_gate_run(
        tmp_path / "two",
        site={"hugo.toml": SITE_FILES["hugo.toml"] + "[[module.mounts]]\nsource='/etc'\ntarget='static'\n"},
    )

    for one in (launch, outside):
        site, findings, _ = build_site(one)
        assert [finding.kind.code for finding in findings] == ["GATE_HUGO_BUILD_REFUSED"]
        assert site.built_sites == {}


def test_a_pipe_in_the_site_stops_the_build_before_anybody_waits_for_it(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path)
    os.mkfifo(launch.job.site / "content/docs/shelf/pipe.md")

    findings = launch.list_issues("hugo_build")

    assert findings == [("GATE_HUGO_BUILD_REFUSED", "content/docs/shelf/pipe.md", 0)]


def check_links(launch: GateRun, output: BuiltSite | None) -> list[tuple[str, int]]:
    async def run_check() -> list[tuple[str, int]]:
        site = await launch.open_site()
        if output is not None:
            site.built_sites["hugo"] = output
        answers = internal_links.check_internal_links(site)
        return [(answer.kind.code, answer.line) for answer in answers if isinstance(answer, IssueDraft)]

    return anyio.run(run_check)


LINK_CASES: list[tuple[str, list[str]]] = [
    ("[x](/docs/shelf/installation/)", []),
    ("[x](../installation/#install)", []),
    ("[x](https://docs.example.org/docs/shelf/)", []),
    ("[x](#export)", []),
    ("![x](/logo.svg)", []),
    ("[x](mailto:a@example.org) [y](https://elsewhere.example.com/)", []),
    ("[x](/docs/shelf/nowhere/)", ["GATE_LINK_BROKEN"]),
    ("[x](../nowhere/)", ["GATE_LINK_BROKEN"]),
    ("[x](/docs/shelf/installation/#nowhere)", ["GATE_LINK_ANCHOR"]),
    ("[x](#nowhere)", ["GATE_LINK_ANCHOR"]),
    ("![x](/nowhere.png)", ["GATE_LINK_IMAGE"]),
    ("<a href='/docs/nowhere/'>x</a>", ["GATE_LINK_BROKEN"]),
    ("<a href='http://[broken'>x</a>", ["GATE_LINK_BROKEN"]),
    ("[x](http://elsewhere.example.com/)", ["GATE_LINK_INSECURE"]),
    ('[x]({{< ref "installation.md" >}})', []),
    ('[x]({{< relref "/docs/shelf/installation" >}})', []),
    ('[x]({{< ref "nowhere.md" >}})', ["GATE_LINK_REFERENCE"]),
    ("```text\n[x](/docs/nowhere/)\n```", []),
]


@pytest.mark.parametrize(("text", "codes"), LINK_CASES)
@pytest.mark.parametrize("how", ["built", "unbuilt"])
def test_links_lead_to_pages_and_places_that_are_there(
    editable_launch: GateRun, output: BuiltSite, text: str, codes: list[str], how: str
) -> None:
    editable_launch.write_file(GUIDE_PATH, render_page("Guide", f"## Export\n\n{text}"))

    assert check_links(editable_launch, output if how == "built" else None) == [(code, 8) for code in codes]


def test_case_counts_in_a_link(editable_launch: GateRun, output: BuiltSite) -> None:
    editable_launch.write_file(GUIDE_PATH, render_page("Guide", "[x](/docs/Shelf/Installation/)"))

    assert check_links(editable_launch, output) == [("GATE_LINK_CASE", 6)]


def test_a_host_whose_site_is_not_here_is_not_judged(editable_launch: GateRun, output: BuiltSite) -> None:
    other = replace(output, hosts=frozenset({"kb.example.org"}), sections=("kb",))
    editable_launch.write_file(GUIDE_PATH, render_page("Guide", "[x](https://kb.example.org/docs/shelf/)"))

    assert check_links(editable_launch, other) == []


def test_what_a_configuration_reads_is_found_however_it_says_so(tmp_path: Path) -> None:
    hugo_config = {
        "contentdir": "content",
        "publishdir": "/anywhere",
        "languages": {"de": {"contentdir": "../x"}},
        "module": {"mounts": [{"source": "/etc", "target": "static"}]},
        "params": {"imagedir": "/img"},
    }

    assert hugo_build.find_outside_folders(hugo_config, tmp_path) == [
        "languages.de.contentdir = ../x",
        "module.mounts.source = (absolute)",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="a supervisor is there on Linux")
def test_hugo_is_given_an_environment_of_its_own() -> None:
    assert set(HUGO_SANDBOX_VARIABLES) >= {
        "HUGO_SECURITY_EXEC_ALLOW",
        "HUGO_SECURITY_FUNCS_GETENV",
        "HUGO_SECURITY_HTTP_URLS",
    }
