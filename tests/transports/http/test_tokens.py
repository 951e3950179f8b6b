"""Tests of tokens as values: their file, the owner of a header, and rate limits."""

import json
import tomllib
from pathlib import Path

import pytest

from cleats.settings import SettingError
from cleats.transports.http.tokens import (
    AccessToken,
    RateLimiter,
    format_entry,
    generate_token,
    hash_token,
    load_tokens,
    match_bearer_token,
)
from tests.support.shell import Shell

SERVED_TOOLSETS = ["code", "assets"]


def write_tokens_file(folder: Path, *entries: str) -> str:
    path = folder / "tokens.toml"
    path.write_text("\n".join(entries))
    path.chmod(0o600)
    return str(path)


def build_token_entry(**fields: object) -> str:
    return format_entry(AccessToken(**{"name": "ci", "sha256": hash_token("secret"), **fields}))  # type: ignore[arg-type]


# The file


def test_an_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    written_token = AccessToken(
        name="ci",
        sha256=hash_token("secret"),
        toolsets=("code",),
        repositories=(tmp_path / 'a"b\\c',),
        per_minute=90,
        burst=5,
    )

    [read_token] = load_tokens("", write_tokens_file(tmp_path, format_entry(written_token)), SERVED_TOOLSETS)

    assert read_token == written_token


def test_what_an_entry_leaves_out_is_not_limited(tmp_path: Path) -> None:
    [token] = load_tokens("", write_tokens_file(tmp_path, build_token_entry()), SERVED_TOOLSETS)

    assert (token.toolsets, token.repositories, token.per_minute) == (None, None, None)
    assert token.per_minute is None


def test_an_empty_list_of_toolsets_is_none_of_them(tmp_path: Path) -> None:
    [token] = load_tokens("", write_tokens_file(tmp_path, build_token_entry(toolsets=())), SERVED_TOOLSETS)

    assert token.toolsets == ()


def test_the_single_token_counts_beside_the_file(tmp_path: Path) -> None:
    both = load_tokens("simple", write_tokens_file(tmp_path, build_token_entry()), SERVED_TOOLSETS)

    assert [token.name for token in both] == ["http_token", "ci"]
    assert load_tokens("", "", SERVED_TOOLSETS) == ()


@pytest.mark.parametrize(
    ("text", "message_part"),
    [
        ("", "token"),
        ("token = []", "/token"),
        ("[[token]]\nname = 'ci'", "sha256"),
        (f"[[token]]\nname = 'a b'\nsha256 = '{'0' * 64}'", "/token/0/name"),
        (build_token_entry() + "rate = 5\n", "rate"),
        (build_token_entry() + "repositories = ['relative']\n", "/token/0/repositories/0"),
        (build_token_entry() + "repositories = []\n", "/token/0/repositories"),
        (build_token_entry() + "per_minute = 0\n", "/token/0/per_minute"),
        (build_token_entry() + "burst = 2024-01-01\n", "value"),
        (build_token_entry() + build_token_entry(), "two entries have the name 'ci'"),
        (build_token_entry() + build_token_entry(name="other"), "same token"),
        (build_token_entry(name="http_token"), "two entries have the name"),
        (build_token_entry(toolsets=("skills",)), "no toolset 'skills' is served"),
        ("[[token", "is not valid TOML"),
    ],
)
def test_a_file_that_is_not_right_stops_the_start_and_says_where(tmp_path: Path, text: str, message_part: str) -> None:
    with pytest.raises(SettingError) as error_info:
        load_tokens("", write_tokens_file(tmp_path, text), SERVED_TOOLSETS)

    assert message_part in str(error_info.value)
    assert "http_tokens" in str(error_info.value)


def test_a_token_where_its_hash_should_be_is_not_repeated(tmp_path: Path) -> None:
    token = generate_token()
    with pytest.raises(SettingError) as error_info:
        load_tokens("", write_tokens_file(tmp_path, f"[[token]]\nname='x'\nsha256='{token}'"), SERVED_TOOLSETS)

    assert "/token/0/sha256" in str(error_info.value)
    assert token not in str(error_info.value)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = write_tokens_file(tmp_path, build_token_entry())
    Path(path).chmod(mode)

    with pytest.raises(SettingError, match="chmod go-w"):
        load_tokens("", path, SERVED_TOOLSETS)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot read"):
        load_tokens("", str(tmp_path / "none.toml"), SERVED_TOOLSETS)


# Whose a header is


def test_a_header_is_matched_with_every_entry_and_with_hashes_only() -> None:
    tokens = [AccessToken(name=name, sha256=hash_token(f"secret {name}")) for name in ("a", "b", "c")]

    assert [match_bearer_token(tokens, f"Bearer secret {name}") for name in ("a", "b", "c")] == tokens
    assert match_bearer_token(tokens, "bearer  secret b ") == tokens[1]
    for header in ("", "Bearer", "Basic secret a", "Bearer x", f"Bearer {hash_token('secret a')}"):
        assert match_bearer_token(tokens, header) is None


def test_a_token_may_have_any_characters() -> None:
    token = AccessToken(name="a", sha256=hash_token("schlüssel"))

    assert match_bearer_token([token], "Bearer " + "schlüssel".encode().decode("latin-1")) == token
    assert match_bearer_token([token], "Bearer schl\u20ac") is None


def test_no_two_fresh_tokens_are_the_same() -> None:
    assert len({generate_token() for _ in range(100)}) == 100
    assert all(len(generate_token()) > 40 for _ in range(10))


# How often


def test_a_bucket_has_room_for_a_burst_and_fills_up_again() -> None:
    now = 100.0
    room = RateLimiter(60, 3, clock=lambda: now)

    assert [room.take() for _ in range(3)] == [0, 0, 0]
    assert room.take() == pytest.approx(1.0)
    now += 0.5
    assert room.take() == pytest.approx(0.5)
    now += 0.5
    assert room.take() == 0
    assert room.take() > 0
    now += 1000
    assert [room.take() > 0 for _ in range(4)] == [False, False, False, True]


def test_without_a_burst_a_minute_may_come_at_once() -> None:
    room = RateLimiter(5, clock=lambda: 0.0)

    assert [room.take() > 0 for _ in range(6)] == [False] * 5 + [True]
    assert RateLimiter(0.5, clock=lambda: 0.0).take() == 0


# The command


def test_the_command_prints_a_token_once_and_the_entry_with_its_hash(shell: Shell) -> None:
    words = ("--toolset", "code", "--repository", ".", "--per-minute", "90", "--burst", "5")
    process = shell.run("token", "new", "ci", *words)

    token, _, rest = process.stdout.partition("\n\n")
    [row] = tomllib.loads(rest)["token"]
    assert row == {
        "name": "ci",
        "sha256": hash_token(token),
        "toolsets": ["code"],
        "repositories": [str(shell.folder.resolve())],
        "per_minute": 90,
        "burst": 5,
    }


def test_the_command_speaks_to_programs(shell: Shell) -> None:
    answer = json.loads(shell.run("token", "new", "ci", "--json").stdout)

    [row] = tomllib.loads(answer["entry"])["token"]
    assert row == {"name": "ci", "sha256": hash_token(answer["token"])}


@pytest.mark.parametrize("name", ["", "a b", "http_token", "x" * 65, "ä"])
def test_a_name_that_the_file_could_not_have_is_refused(shell: Shell, name: str) -> None:
    assert shell.run("token", "new", name).returncode == 2
