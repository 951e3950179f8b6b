"""Sources that are understood, and sources that are allowed."""

from pathlib import Path

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.system.http_client import is_public_address
from cleats.toolsets.code.downloads import sources
from cleats.toolsets.code.downloads.sources import DownloadPolicy
from tests.support.shell import Shell

PINNED_SHA256 = "ab" * 32


def make_policy(*hosts: str) -> DownloadPolicy:
    return DownloadPolicy(hosts, (), 1)


def test_a_url_keeps_its_query_and_shows_without_it() -> None:
    source = sources.parse_source(f"https://example.org/a?key=1#sha256={PINNED_SHA256.upper()}", Path("/r"))

    assert source.url == "https://example.org/a?key=1"
    assert source.public_url == "https://example.org/a"
    assert source.sha256 == PINNED_SHA256
    assert source.path is None
    assert source.is_encrypted


def test_a_path_and_a_file_url_are_files_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "a b.txt"

    for text in ("a b.txt", "./a b.txt", str(file), f"file://{tmp_path}/a%20b.txt"):
        assert sources.parse_source(text, tmp_path).path == file


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#sha256=" + PINNED_SHA256,
        "https://example.org/#sha256=12",
        "https://example.org/#other",
        "ftp://example.org/a",
        "javascript:alert(1)",
        "data:text/plain,hi",
        "https://",
        "https:///path",
        "https://user:password@example.org/",
        "https://example.org:99999/",
        "https://[::1/",
        "file://server/share",
        "file:relative",
        "a\0b",
        "https://example.org/\r\nHost: evil",
        "~nobody-has-this-name/x",
        pytest.param("a/" * 500_000, id="an endless path"),
    ],
)
def test_what_is_no_source_is_refused_with_a_hint(text: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError) as refused:
        sources.parse_source(text, tmp_path)

    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert refused.value.hint
    assert "password@" not in refused.value.message


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_private_addresses_are_known_in_every_disguise(address: str, public: bool) -> None:
    assert is_public_address(address) is public


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "0x7f000001", "2130706433"])
def test_this_machine_is_reached_only_when_the_operator_names_it(host: str) -> None:
    for hosts in ((), ("example.org",)):
        with pytest.raises(ToolError) as refused:
            anyio.run(make_policy(*hosts).resolve_host, host, 80)
        assert refused.value.code in (ErrorCode.FORBIDDEN, ErrorCode.NOT_FOUND)


@pytest.mark.parametrize("hosts", [("127.0.0.1",), ("*",), ("127.*", "example.org")])
def test_a_host_that_is_named_is_reached(hosts: tuple[str, ...]) -> None:
    assert anyio.run(make_policy(*hosts).resolve_host, "127.0.0.1", 80) == "127.0.0.1"


def test_a_redirect_never_leaves_encryption() -> None:
    source = sources.parse_source("https://example.org/a", Path("/"))

    with pytest.raises(ToolError) as refused:
        sources._resolve_redirect(source.url, "http://example.org/a", source)

    assert "https to http" in refused.value.message
    assert sources._resolve_redirect(source.url, "/b?c#d", source) == "https://example.org/b?c"
    assert sources._resolve_redirect("http://example.org/", "https://example.net", source) == "https://example.net/"


def test_a_repository_cannot_say_where_downloads_come_from(shell: Shell) -> None:
    for line in ('download_hosts = ["*"]', 'download_roots = ["/"]', "download_limit = 1"):
        (shell.folder / ".cleats.toml").write_text(line)

        result = shell.run("download", "models")

        assert result.returncode == 2
        assert "cannot be set by a repository" in result.stderr


def test_the_defaults_are_the_careful_ones() -> None:
    settings = Settings(cache_dir=Path("/cache"))

    assert DownloadPolicy.from_settings(settings) == DownloadPolicy((), (Path("/cache"),), 64 << 20)


# The command


def test_the_command_says_what_is_built_in(shell: Shell) -> None:
    models = shell.run("download", "models")
    words = shell.run("download", "dictionaries")

    assert models.returncode == words.returncode == 0
    assert "comes with this program" in models.stdout
    assert "built-in" in words.stdout


def test_the_command_takes_any_file_of_the_person_who_types(shell: Shell) -> None:
    (shell.folder / "repo" / ".git").mkdir(parents=True)
    (shell.folder / "words.txt").write_text("haus\nbaum\n")

    result = shell.run("download", "dictionaries", "--url", "de=words.txt", "--repo", "repo")

    assert result.returncode == 0
    assert "2 words" in result.stdout
    assert "do not use them yet" in result.stderr


def test_the_command_tells_what_cannot_be_had_and_what_was_asked_wrongly(shell: Shell) -> None:
    missing = shell.run("download", "dictionaries", "--url", "de=missing.txt")
    wrong = shell.run("download", "dictionaries", "--lang", "xx")
    none = shell.run("download", "extensions")
    absent = shell.run("download", "verify")

    assert (missing.returncode, wrong.returncode, none.returncode) == (1, 2, 2)
    assert "built in" in none.stderr
    assert absent.returncode == 1
    assert "not there" in absent.stdout
