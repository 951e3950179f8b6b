"""Gates that look at the site as a whole: what changed, how it builds, where links lead."""

import base64
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from cleats.toolsets.launch.gates import builds, hugo_build, internal_links
from cleats.toolsets.launch.gates.builds import Build
from cleats.toolsets.launch.gates.model import Finding
from cleats.toolsets.launch.gates.output import Output
from cleats.toolsets.launch.gates.site import Site
from tests.launch_gates_world import GUIDE, INSTALLATION, SITE, START, World, page, world


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world(tmp_path_factory.mktemp("launch"))


@pytest.fixture
def broken(launch: World) -> Iterator[World]:
    """The shared launch; what a test does to a page is undone."""
    before = {path: (launch.job.site / path).read_bytes() for path in (GUIDE, START, INSTALLATION)}
    yield launch
    for path, data in before.items():
        launch.write(path, data)


def test_what_lies_outside_the_allowed_paths_is_found_component_by_component(
    tmp_path: Path,
) -> None:
    launch = world(tmp_path)
    launch.write("content/docs/shelf-extra/a.md", page("A", "Text."))
    launch.write("hugo.toml", "title = 'Mine'\n")
    (launch.job.site / "static/logo.svg").unlink()

    assert launch.codes("allowed_paths") == [
        ("GATE_PATH_OUTSIDE", "content/docs/shelf-extra/a.md", 0),
        ("GATE_PATH_OUTSIDE", "hugo.toml", 0),
        ("GATE_PATH_OUTSIDE", "static/logo.svg", 0),
    ]


def test_only_plain_text_files_pass(tmp_path: Path) -> None:
    launch = world(tmp_path)
    folder = launch.job.site / "content/docs/shelf"
    (folder / "link.md").symlink_to(folder / "installation.md")
    launch.write("content/docs/shelf/data.md", b"a\0b")
    launch.write("content/docs/shelf/latin.md", "caf\xe9".encode("latin-1"))
    launch.write("content/docs/shelf/run.md", "Text.\n")
    (folder / "run.md").chmod(0o755)

    assert launch.codes("allowed_paths") == [
        ("GATE_PATH_BINARY", "content/docs/shelf/data.md", 0),
        ("GATE_PATH_BINARY", "content/docs/shelf/latin.md", 0),
        ("GATE_PATH_NOT_A_FILE", "content/docs/shelf/link.md", 0),
        ("GATE_PATH_EXECUTABLE", "content/docs/shelf/run.md", 0),
    ]


def test_budgets_are_kept(tmp_path: Path) -> None:
    launch = world(tmp_path, config={"budgets": {"max_files_changed": 4, "max_lines_per_file": 30}})
    launch.write(GUIDE, page("A", "x\n" * 26))
    launch.write(INSTALLATION, page("A", "x\n" * 25))  # as many as there may be
    launch.write(START, page("A", "x" * 500_001))

    assert launch.codes("budgets") == [
        ("GATE_BUDGET_FILES", "", 0),
        ("GATE_BUDGET_LINES", GUIDE, 0),
        ("GATE_BUDGET_BYTES", START, 0),
    ]


def test_a_section_that_no_configuration_covers_is_a_blocker(tmp_path: Path) -> None:
    launch = world(tmp_path)
    (launch.job.site / "hugo.toml").unlink()

    found = launch.verdict("hugo_config").issues

    assert [each.error_code for each in found] == ["GATE_HUGO_CONFIG_MISSING"] * 2
    assert "looked for hugo.toml" in found[0].message


CONFIGS = [
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


@pytest.mark.parametrize(("text", "code"), CONFIGS)
def test_a_configuration_parses_and_keeps_to_the_site(launch: World, text: str, code: str) -> None:
    launch.write("hugo.toml", text)
    try:
        assert launch.codes("hugo_config") == [(code, "hugo.toml", 0)]
    finally:
        launch.write("hugo.toml", SITE["hugo.toml"])


def test_a_folder_of_configuration_is_read_as_hugo_reads_it() -> None:
    assert Build("a", "config/_default/hugo.toml", (), ()).words == ["--configDir", "config"]
    assert Build("a", "configs/x/3d.toml", (), ()).words == ["--config", "configs/x/3d.toml"]


def built(launch: World) -> tuple[Site, list[Finding], list[str]]:
    async def build() -> tuple[Site, list[Finding], list[str]]:
        site = await launch.site()
        site.scratch.mkdir(parents=True, exist_ok=True)
        said = await hugo_build.errand(site)
        found = [each for each in said if isinstance(each, Finding)]
        return site, found, [each for each in said if isinstance(each, str)]

    return anyio.run(build)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Output:
    """One build for every test that only reads what it made."""
    site, found, _ = built(world(tmp_path_factory.mktemp("built")))
    assert found == []
    return site.built["hugo"]


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)


def test_a_build_leaves_the_worktree_as_it_was(tmp_path: Path) -> None:
    """Also when the site wants images to be made smaller, and statistics to be written."""
    layout = "{{ with resources.Get `a.png` }}{{ (.Resize `1x`).RelPermalink }}{{ end }}"
    stats = "[build.buildStats]\nenable = true\n"
    launch = world(
        tmp_path,
        site={
            "hugo.toml": SITE["hugo.toml"] + stats,
            "layouts/_default/single.html": layout + SITE["layouts/_default/single.html"],
        },
    )
    launch.write("assets/a.png", PIXEL)

    site, found, _ = built(launch)

    assert found == []
    assert anyio.run(launch.site).changes == site.changes
    assert any(each.startswith("a_hu") for each in site.built["hugo"].files)
    assert {"docs/shelf/index.html", "docs/shelf/installation/index.html"} <= site.built[
        "hugo"
    ].files


def test_the_output_answers_as_a_web_server_does(output: Output) -> None:
    assert output.file("/docs/shelf/") == "docs/shelf/index.html"
    assert output.file("/docs/shelf") == "docs/shelf/index.html"
    assert output.file("/logo.svg") == "logo.svg"
    assert output.file("/docs/Shelf/") is None
    assert output.nearly("/docs/Shelf/") == "docs/shelf/index.html"
    assert output.file("/../etc/passwd") is None
    assert "requirements" in output.anchors("docs/shelf/installation/index.html")


def test_a_site_below_a_path_is_looked_up_below_it(output: Output) -> None:
    below = replace(output, base="/base/")

    assert below.file("/base/docs/shelf/") == "docs/shelf/index.html"
    assert below.file("/base") == "index.html"
    assert below.file("/docs/shelf/") is None


HOSTILE = {
    "env": "{{ os.Getenv `HOME` }}",
    "network": "{{ with resources.GetRemote `http://127.0.0.1:9/x` }}{{ .Content }}{{ end }}",
    "exec": "{{ (resources.FromString `a.css` `a{}` | css.PostCSS).Content }}",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_site_gets_no_program_no_environment_and_no_network(
    tmp_path: Path, kind: str
) -> None:
    allow = (
        "[security.exec]\nallow = ['.*']\nosEnv = ['.*']\n[security.funcs]\ngetenv = ['.*']\n"
        "[security.http]\nurls = ['.*']\nmethods = ['.*']\n"
    )
    launch = world(
        tmp_path,
        site={
            "hugo.toml": SITE["hugo.toml"] + allow,
            "layouts/_default/single.html": HOSTILE[kind],
            "postcss.config.js": "module.exports = {}\n",
        },
    )

    _, found, log = built(launch)

    assert found[0].code == "GATE_HUGO_BUILD_FAILED"
    assert str(tmp_path) not in "\n".join([*log, *(each.message for each in found)])
    assert any(
        word in found[0].message for word in ("access denied", "not whitelisted", "security")
    )


def test_a_page_that_does_not_build_is_named_with_its_file(tmp_path: Path) -> None:
    launch = world(tmp_path)
    launch.write(GUIDE, page("Guide", 'See [x]({{< ref "nowhere.md" >}}).'))

    _, found, _ = built(launch)

    assert {each.code for each in found} == {"GATE_HUGO_BUILD_FAILED"}
    assert any(GUIDE in (each.path, each.message) or "nowhere.md" in each.message for each in found)


def test_what_hugo_warns_of_is_a_warning(tmp_path: Path) -> None:
    layout = "{{ warnf `mind %s` .Path }}{{ .Content }}"
    other = "---\ntitle: Other\n---\n\nText.\n"
    launch = world(
        tmp_path,
        site={"layouts/_default/single.html": layout, "content/docs/other/a.md": other},
    )

    _, found, log = built(launch)

    assert {each.code for each in found} == {"GATE_HUGO_BUILD_WARNING"}
    assert [(each.severity, each.message) for each in found] == [
        ("info", "mind /docs/other/a"),
        *(
            ("warn", f"mind /docs/shelf/{name}")
            for name in ("developer-guide", "getting-started", "installation")
        ),
    ]
    assert log[1:] == sorted(log[1:])


def test_a_planned_page_that_comes_out_elsewhere_is_an_error(tmp_path: Path) -> None:
    launch = world(tmp_path)
    launch.write(GUIDE, page("Guide\nurl: /elsewhere/", "Text."))
    launch.write(START, page("Start", "[x](../installation.md) and [y](installation.md)"))

    site, found, _ = built(launch)

    assert [(each.code, each.path) for each in found] == [("GATE_HUGO_BUILD_ADDRESS", GUIDE)]
    # A link to a source file is wrong too, unless the site makes an address of it.
    links = linked(launch, site.built["hugo"])
    assert links.count(("GATE_LINK_BROKEN", 6)) == 2


def test_a_link_in_the_site_or_a_folder_outside_it_stops_the_build(tmp_path: Path) -> None:
    launch = world(tmp_path / "one")
    (launch.job.site / "content/docs/shelf/x.md").symlink_to("/etc/passwd")
    outside = world(
        tmp_path / "two",
        site={
            "hugo.toml": SITE["hugo.toml"] + "[[module.mounts]]\nsource='/etc'\ntarget='static'\n"
        },
    )

    for one in (launch, outside):
        site, found, _ = built(one)
        assert [each.code for each in found] == ["GATE_HUGO_BUILD_REFUSED"]
        assert site.built == {}


def test_a_pipe_in_the_site_stops_the_build_before_anybody_waits_for_it(tmp_path: Path) -> None:
    launch = world(tmp_path)
    os.mkfifo(launch.job.site / "content/docs/shelf/pipe.md")

    found = launch.codes("hugo_build")

    assert found == [("GATE_HUGO_BUILD_REFUSED", "content/docs/shelf/pipe.md", 0)]


def linked(launch: World, output: Output | None) -> list[tuple[str, int]]:
    async def look() -> list[tuple[str, int]]:
        site = await launch.site()
        if output is not None:
            site.built["hugo"] = output
        said = internal_links.check(site)
        return [(each.code, each.line) for each in said if isinstance(each, Finding)]

    return anyio.run(look)


LINKS: list[tuple[str, list[str]]] = [
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


@pytest.mark.parametrize(("text", "codes"), LINKS)
@pytest.mark.parametrize("how", ["built", "unbuilt"])
def test_links_lead_to_pages_and_places_that_are_there(
    broken: World, output: Output, text: str, codes: list[str], how: str
) -> None:
    broken.write(GUIDE, page("Guide", f"## Export\n\n{text}"))

    assert linked(broken, output if how == "built" else None) == [(code, 8) for code in codes]


def test_case_counts_in_a_link(broken: World, output: Output) -> None:
    broken.write(GUIDE, page("Guide", "[x](/docs/Shelf/Installation/)"))

    assert linked(broken, output) == [("GATE_LINK_CASE", 6)]


def test_a_host_whose_site_is_not_here_is_not_judged(broken: World, output: Output) -> None:
    other = replace(output, hosts=frozenset({"kb.example.org"}), sections=("kb",))
    broken.write(GUIDE, page("Guide", "[x](https://kb.example.org/docs/shelf/)"))

    assert linked(broken, other) == []


def test_what_a_configuration_reads_is_found_however_it_says_so(tmp_path: Path) -> None:
    told = {
        "contentdir": "content",
        "publishdir": "/anywhere",
        "languages": {"de": {"contentdir": "../x"}},
        "module": {"mounts": [{"source": "/etc", "target": "static"}]},
        "params": {"imagedir": "/img"},
    }

    assert builds.outside(told, tmp_path) == [
        "languages.de.contentdir = ../x",
        "module.mounts.source = (absolute)",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="a supervisor is there on Linux")
def test_hugo_is_given_an_environment_of_its_own() -> None:
    assert set(builds.FORBIDDEN) >= {
        "HUGO_SECURITY_EXEC_ALLOW",
        "HUGO_SECURITY_FUNCS_GETENV",
        "HUGO_SECURITY_HTTP_URLS",
    }
