"""Tests of the gates that read pages: front matter, Markdown, tokens, merge markers, secrets."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cleats.toolsets.launch.gates import markdown_lint, secrets, template_tokens
from cleats.toolsets.launch.gates.secrets import has_host_path
from cleats.toolsets.launch.gates.site import PageFile
from tests.support.gates import GUIDE_PATH, INSTALLATION_PATH, START_PATH, GateRun, create_gate_run, render_page


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> GateRun:
    return create_gate_run(tmp_path_factory.mktemp("launch"))


@pytest.fixture
def editable_launch(launch: GateRun) -> Iterator[GateRun]:
    """Yield the shared launch; afterwards undo what the test wrote."""
    before = {path: (launch.job.site / path).read_bytes() for path in (GUIDE_PATH, START_PATH, INSTALLATION_PATH)}
    yield launch
    for path, data in before.items():
        launch.write_file(path, data)


@pytest.mark.parametrize(
    "gate",
    [
        "schema",
        "allowed_paths",
        "budgets",
        "conflict_markers",
        "secrets",
        "front_matter",
        "template_tokens",
        "markdown_lint",
        "readability",
        "hugo_config",
        "internal_links",
        "snippet_syntax",
        "truth_lock",
        "consistency",
        "content_distribution",
    ],
)
def test_good_pages_pass_every_gate(launch: GateRun, gate: str) -> None:
    verdict = launch.run_gate(gate, strict=True)

    assert verdict.issues == ()
    assert verdict.ok
    assert verdict.log.startswith(f"gate {gate}: passed\n")


FRONT_MATTER_CASES = [
    ("---\ntitle: [\nweight: 1\n---\n\nText.\n", "GATE_FRONTMATTER_INVALID", 4),
    ("---\ntitle: A\n\nText without an end.\n", "GATE_FRONTMATTER_INVALID", 1),
    ("---\ntitle: A\ntitle: B\nweight: 1\n---\n\nText.\n", "GATE_FRONTMATTER_INVALID", 3),
    ("Only text.\n", "GATE_FRONTMATTER_MISSING", 1),
    ("---\ntitle: A\n---\n\nText.\n", "GATE_FRONTMATTER_KEY_MISSING", 1),
    ("---\ntitle: A\nweight: ten\n---\n\nText.\n", "GATE_FRONTMATTER_KEY_TYPE", 1),
    ("---\ntitle: A\nweight: true\n---\n\nText.\n", "GATE_FRONTMATTER_KEY_TYPE", 1),
    ("---\ntitle: ''\nweight: 1\n---\n\nText.\n", "GATE_FRONTMATTER_KEY_TYPE", 1),
    ("---\ntitle: A\nweight: 1\ndraft: true\n---\n\nText.\n", "GATE_FRONTMATTER_DRAFT", 1),
]


@pytest.mark.parametrize(("text", "code", "line"), FRONT_MATTER_CASES)
def test_front_matter_that_the_section_does_not_have_is_found(
    editable_launch: GateRun, text: str, code: str, line: int
) -> None:
    editable_launch.write_file(GUIDE_PATH, text)

    assert editable_launch.list_issues("front_matter") == [(code, GUIDE_PATH, line)]


def lint_page(body: str, text: str | None = None) -> list[tuple[str, int]]:
    file = PageFile("a.md", render_page("A", body) if text is None else text)
    return [(finding.kind.code.removeprefix("GATE_LINT_"), finding.line) for finding in markdown_lint.lint_page(file)]


LINT_CASES = [
    ("## One\n\n#### Three\n", [("HEADING_SKIP", 8)]),
    ("# Title again\n", [("SECOND_TITLE", 6)]),
    ("##\n", [("EMPTY_HEADING", 6)]),
    ("## One\nText.\n", [("HEADING_SPACE", 6)]),
    ("##One\n", [("HEADING_MARK", 6)]),
    ("Text. \n\nMore.\n", [("TRAILING_SPACE", 6)]),
    ("A\tB\n", [("TAB", 6)]),
    ("A.\n\n\nB.\n", [("BLANK_LINES", 8)]),
    ("```\nx\n```\n", [("FENCE_LANGUAGE", 6)]),
    ("## A\n\nx\n\n## A\n\ny\n", [("TWIN_HEADING", 10)]),
    ("```python\nx = 1\n", [("OPEN_FENCE", 6)]),
    ("See https://example.org/a_b. Then.\n", [("BARE_URL", 6)]),
    ("[a]()\n", [("EMPTY_LINK", 6)]),
    ("![](x.png)\n", [("IMAGE_ALT", 6)]),
    ("Run <script>alert(1)</script>\n", [("UNSAFE_HTML", 6)]),
    ("<img src='x' alt='y' onerror='z()'>\n", [("UNSAFE_HTML", 6)]),
    ("[a](javascript:x)\n", [("UNSAFE_HTML", 6)]),
]


@pytest.mark.parametrize(("body", "expected_codes"), LINT_CASES)
def test_markdown_that_reads_badly_is_found(body: str, expected_codes: list[tuple[str, int]]) -> None:
    assert lint_page(body) == expected_codes


CLEAN_BODIES = [
    "A line that breaks  \nhere.\n",
    "`https://example.org` and <https://example.org> and [x](https://example.org).\n",
    "[x](https://example.org/a_(b) 'title') and [y][z]\n\n[z]: https://example.org\n",
    "```python\nurl = 'https://example.org'   \n\n\n# One\n\tx = 1\n```\n",
    "````markdown\n```\nx\n```\n````\n",
    "Heading\n-------\n\nText.\n",
    "Write `<script>` in code.\n",
    '<a href="https://example.org">x</a>\n',
]


@pytest.mark.parametrize("body", CLEAN_BODIES)
def test_markdown_that_only_looks_bad_is_left_alone(body: str) -> None:
    assert lint_page(body) == []


def test_the_whole_file_is_looked_at_too() -> None:
    assert lint_page("", render_page("A", "Text.").rstrip("\n")) == [("FINAL_NEWLINE", 0)]
    assert lint_page("", render_page("A", "Text.") + "\n") == [("FINAL_NEWLINE", 0)]
    assert lint_page("", render_page("A", "Text.").replace("\n", "\r\n"))[0] == ("LINE_ENDS", 0)
    assert lint_page("", "\ufeff" + render_page("A", "Text.")) == [("BYTE_ORDER", 0)]
    assert lint_page("", "---\ntitle: A\n---\n") == [("EMPTY_PAGE", 0)]


TOKEN_CASES = [
    ("Use __PRODUCT_NAME__ now.", ["__PRODUCT_NAME__"]),
    ("Use {{ name }} and {{.Title}}.", ["{{ name }}", "{{.Title}}"]),
    ("__init__ is Python's, and so is __name__.", []),
    ("{{< ref x >}} and {{% note %}} are Hugo's.", []),
    ("A bold __Word__ and snake__CASE__x.", []),
]


@pytest.mark.parametrize(("text", "expected_tokens"), TOKEN_CASES)
def test_tokens_are_told_from_code_and_shortcodes(text: str, expected_tokens: list[str]) -> None:
    assert template_tokens.find_tokens(text) == expected_tokens


def test_a_leaked_token_is_a_blocker_in_text_and_front_matter_but_not_in_code(
    editable_launch: GateRun,
) -> None:
    editable_launch.write_file(
        GUIDE_PATH,
        "---\ntitle: About __NAME__\nweight: 1\n---\n\n"
        "Text __BODY__.\n\nUse `__CODE__`.\n\n```python\n__FENCE__ = '{{ x }}'\n```\n",
    )

    verdict = editable_launch.run_gate("template_tokens")

    assert [(issue.severity, issue.line) for issue in verdict.issues] == [
        ("blocker", 1),
        ("blocker", 6),
    ]


def test_marks_of_a_merge_are_found_and_a_heading_of_equal_signs_is_not(editable_launch: GateRun) -> None:
    editable_launch.write_file(
        GUIDE_PATH,
        render_page("A", "Heading\n=======\n\n<<<<<<< ours\na\n||||||| base\nb\n=======\nc\n>>>>>>> theirs"),
    )

    findings = editable_launch.list_issues("conflict_markers")

    assert [line for _, _, line in findings] == [9, 11, 13, 15]


# In pieces, so that nobody takes this file for a leak.
SECRET_CASES: list[tuple[str, str]] = [
    ("token: ghp" + "_" + "a1B2" * 9, "a GitHub token"),
    ("AKIA" + "ABCDEFGHIJKLMNOP", "an AWS access key"),
    ("-----BEGIN RSA " + "PRIVATE KEY-----", "a private key"),
    ("xoxb" + "-1234567890-abcdefghij", "a Slack token"),
    ("sk_live" + "_" + "4eC39HqLyjWDarjtT1zdp7dc", "a Stripe key"),
    ("sk-" + "proj-" + "aB3dE5gH7jK9" * 4, "an OpenAI key"),
    ("AIza" + "SyA1234567890abcdefghijklmnopqrstuv", "a Google API key"),
    (
        "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N",
        "a JSON web token",
    ),
    ("postgres://admin:hunter22" + "@db.internal/x", "a password in an address"),
    ('api_key = "q7Zp2Lw9Xk4Rt6Vb8Nc1"', "a secret that was written out"),
]


@pytest.mark.parametrize(("line", "name"), SECRET_CASES)
def test_secrets_are_known_by_their_shape(line: str, name: str) -> None:
    assert secrets.find_secrets(line) == [name]


HARMLESS_TEXTS = [
    "api_key = os.environ['SHELF_API_KEY']",
    'api_key = "YOUR_API_KEY_GOES_HERE_1234"',
    "token: <your-token-from-the-console>",
    "password = getpass.getpass()",
    "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "https://user:password@example.org/",
    "postgres://localhost:5432/shelf",
    "the sk-learn-compatible-estimator-interface-and-more",
    "token = next_token_in_the_sequence",
    "author: somebody_with_a_long_name",
]


@pytest.mark.parametrize("line", HARMLESS_TEXTS)
def test_what_only_looks_like_a_secret_is_none(line: str) -> None:
    assert secrets.find_secrets(line) == []


def test_a_secret_in_a_code_block_is_a_blocker_and_is_not_repeated(editable_launch: GateRun) -> None:
    secret = "ghp" + "_" + "a1B2" * 9
    editable_launch.write_file(GUIDE_PATH, render_page("A", f"```python\nlogin('{secret}')\n```"))

    verdict = editable_launch.run_gate("secrets")

    assert [(issue.severity, issue.path, issue.line) for issue in verdict.issues] == [("blocker", GUIDE_PATH, 7)]
    assert secret not in verdict.log


HOST_PATHS = [
    "The data lies in /home/carla/.local/share/shelf.",
    "open('/home/carla/projects/shelf/x.csv')",
    "cd /Users/carla/shelf",
    "see file:///Users/carla/shelf/readme.md",
    r"C:\Users\carla\shelf",
    r'"D:\\Users\\carla\\shelf"',
    "C:/Users/carla/shelf",
    "first /home/user/projects, then /home/carla/projects/x",
]


@pytest.mark.parametrize("line", HOST_PATHS)
def test_a_path_of_somebodys_machine_is_known(line: str) -> None:
    assert has_host_path(line)


@pytest.mark.parametrize(
    "line",
    [
        "The data lies in /home/user/.local/share/shelf.",
        "cd /Users/yourname/shelf or /Users/your-user-name/shelf or /Users/john.doe/shelf",
        r"C:\Users\<name>\shelf",
        r"C:\Users\Public\Documents",
        "[the start](/home/data/) of the site",
        "<a href='/home/code/src/'>",
        "https://example.org/home/carla/projects/",
        "GET /home/feed/items",
        "@app.route('/home/feed/latest')",
        "$HOME/projects and ~/projects and ${ROOT}/home/carla/src",
        "/home/carla",
        "/homes/carla/projects",
        "/Users/ holds the users",
        "GET /api/Users/42/roles",
    ],
)
def test_what_only_looks_like_a_path_of_a_machine_is_none(line: str) -> None:
    assert not has_host_path(line)


def test_a_path_of_a_machine_in_a_page_is_a_warning_and_is_not_repeated(editable_launch: GateRun) -> None:
    editable_launch.write_file(GUIDE_PATH, render_page("A", "It is in /home/carla/projects/shelf here."))

    verdict = editable_launch.run_gate("secrets")

    assert verdict.ok
    assert [(issue.severity, issue.error_code, issue.line) for issue in verdict.issues] == [
        ("warn", "GATE_HOST_PATH", 6)
    ]
    assert "carla" not in verdict.log


LONG_TEXTS: list[tuple[str, Callable[[str], object]]] = [
    ("`" * 20_000, lint_page),
    ("[" * 400, lint_page),
    ("{{" * 20_000, template_tokens.find_tokens),
    ("__A" * 20_000, template_tokens.find_tokens),
    ("https://" * 20_000, markdown_lint.find_bare_urls),
    ("password=" * 20_000, secrets.find_secrets),
    ("a:" * 20_000, secrets.find_secrets),
    ("/home/a" * 20_000, has_host_path),
    ("/Users/" + "a" * 100_000, has_host_path),
    ("<" * 4_000, lint_page),
    ("<a " * 2_000, lint_page),
]


@pytest.mark.parametrize(("text", "read"), LONG_TEXTS, ids=lambda value: str(value)[:12])
@pytest.mark.timeout(60)  # what takes a rule long would take it minutes
def test_no_text_takes_a_rule_long(text: str, read: Callable[[str], object]) -> None:
    read(text)


def test_strictness_turns_warnings_into_errors(tmp_path: Path, editable_launch: GateRun) -> None:
    editable_launch.write_file(GUIDE_PATH, render_page("A", "## One\n\n#### Three"))

    lenient, strict = editable_launch.run_gate("markdown_lint"), editable_launch.run_gate("markdown_lint", strict=True)

    assert (lenient.ok, [issue.severity for issue in lenient.issues]) == (True, ["warn"])
    assert (strict.ok, [issue.severity for issue in strict.issues]) == (False, ["error"])


def test_only_a_line_feed_ends_a_line(editable_launch: GateRun) -> None:
    """Check that a form feed or a line separator in the text moves no line."""
    editable_launch.write_file(
        GUIDE_PATH, render_page("A", "One\f two\u2028three.\n\n```text\n__CODE__\n```\n\n__TOKEN__")
    )

    assert editable_launch.list_issues("template_tokens") == [("GATE_TOKEN_LEAKED", GUIDE_PATH, 12)]
