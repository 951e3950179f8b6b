"""Tokens as values: the file that names them, whose a header is, how often they may come."""

import json
import tomllib
from pathlib import Path

import pytest

from cleats.settings import SettingError
from cleats.transports.http.rates import Bucket, bucket
from cleats.transports.http.tokens import Token, bearer, configured, entry, fresh, hashed
from tests.shell import Shell

SERVED = ["code", "assets"]


def file_of(folder: Path, *entries: str) -> str:
    path = folder / "tokens.toml"
    path.write_text("\n".join(entries))
    path.chmod(0o600)
    return str(path)


def a_token(**more: object) -> str:
    return entry(Token(**{"name": "ci", "sha256": hashed("secret"), **more}))  # type: ignore[arg-type]


# The file


def test_an_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = Token(
        name="ci",
        sha256=hashed("secret"),
        toolsets=("code",),
        repositories=(tmp_path / 'a"b\\c',),
        per_minute=90,
        burst=5,
    )

    [read] = configured("", file_of(tmp_path, entry(written)), SERVED)

    assert read == written


def test_what_an_entry_leaves_out_is_not_limited(tmp_path: Path) -> None:
    [token] = configured("", file_of(tmp_path, a_token()), SERVED)

    assert (token.toolsets, token.repositories, token.per_minute) == (None, None, None)
    assert bucket(token) is None


def test_an_empty_list_of_toolsets_is_none_of_them(tmp_path: Path) -> None:
    [token] = configured("", file_of(tmp_path, a_token(toolsets=())), SERVED)

    assert token.toolsets == ()


def test_the_single_token_counts_beside_the_file(tmp_path: Path) -> None:
    both = configured("simple", file_of(tmp_path, a_token()), SERVED)

    assert [token.name for token in both] == ["http_token", "ci"]
    assert configured("", "", SERVED) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "token"),
        ("token = []", "/token"),
        ("[[token]]\nname = 'ci'", "sha256"),
        (f"[[token]]\nname = 'a b'\nsha256 = '{'0' * 64}'", "/token/0/name"),
        (a_token() + "rate = 5\n", "rate"),
        (a_token() + "repositories = ['relative']\n", "/token/0/repositories/0"),
        (a_token() + "repositories = []\n", "/token/0/repositories"),
        (a_token() + "per_minute = 0\n", "/token/0/per_minute"),
        (a_token() + "burst = 2024-01-01\n", "value"),
        (a_token() + a_token(), "'ci' is taken"),
        (a_token() + a_token(name="other"), "same token"),
        (a_token(name="http_token"), "is taken"),
        (a_token(toolsets=("skills",)), "no toolset 'skills' is served"),
        ("[[token", "no TOML"),
    ],
)
def test_a_file_that_is_not_right_stops_the_start_and_says_where(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(SettingError) as raised:
        configured("", file_of(tmp_path, text), SERVED)

    assert said in str(raised.value)
    assert "http_tokens" in str(raised.value)


def test_a_token_where_its_hash_should_be_is_not_repeated(tmp_path: Path) -> None:
    made = fresh()
    with pytest.raises(SettingError) as raised:
        configured("", file_of(tmp_path, f"[[token]]\nname='x'\nsha256='{made}'"), SERVED)

    assert "/token/0/sha256" in str(raised.value)
    assert made not in str(raised.value)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = file_of(tmp_path, a_token())
    Path(path).chmod(mode)

    with pytest.raises(SettingError, match="chmod go-w"):
        configured("", path, SERVED)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot read"):
        configured("", str(tmp_path / "none.toml"), SERVED)


# Whose a header is


def test_a_header_is_matched_with_every_entry_and_with_hashes_only() -> None:
    tokens = [Token(name=name, sha256=hashed(f"secret {name}")) for name in ("a", "b", "c")]

    assert [bearer(tokens, f"Bearer secret {name}") for name in ("a", "b", "c")] == tokens
    assert bearer(tokens, "bearer  secret b ") == tokens[1]
    for header in ("", "Bearer", "Basic secret a", "Bearer x", f"Bearer {hashed('secret a')}"):
        assert bearer(tokens, header) is None


def test_a_token_may_have_any_characters() -> None:
    token = Token(name="a", sha256=hashed("schlüssel"))

    assert bearer([token], "Bearer " + "schlüssel".encode().decode("latin-1")) == token
    assert bearer([token], "Bearer schl\u20ac") is None


def test_no_two_fresh_tokens_are_the_same() -> None:
    assert len({fresh() for _ in range(100)}) == 100
    assert all(len(fresh()) > 40 for _ in range(10))


# How often


def test_a_bucket_has_room_for_a_burst_and_fills_up_again() -> None:
    now = 100.0
    room = Bucket(60, 3, clock=lambda: now)

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
    room = Bucket(5, clock=lambda: 0.0)

    assert [room.take() > 0 for _ in range(6)] == [False] * 5 + [True]
    assert Bucket(0.5, clock=lambda: 0.0).take() == 0


# The command


def test_the_command_prints_a_token_once_and_the_entry_with_its_hash(shell: Shell) -> None:
    words = ("--toolset", "code", "--repository", ".", "--per-minute", "90", "--burst", "5")
    ended = shell.run("token", "new", "ci", *words)

    made, _, rest = ended.stdout.partition("\n\n")
    [row] = tomllib.loads(rest)["token"]
    assert row == {
        "name": "ci",
        "sha256": hashed(made),
        "toolsets": ["code"],
        "repositories": [str(shell.folder.resolve())],
        "per_minute": 90,
        "burst": 5,
    }


def test_the_command_speaks_to_programs(shell: Shell) -> None:
    told = json.loads(shell.run("token", "new", "ci", "--json").stdout)

    [row] = tomllib.loads(told["entry"])["token"]
    assert row == {"name": "ci", "sha256": hashed(told["token"])}


@pytest.mark.parametrize("name", ["", "a b", "http_token", "x" * 65, "ä"])
def test_a_name_that_the_file_could_not_have_is_refused(shell: Shell, name: str) -> None:
    assert shell.run("token", "new", name).returncode == 2
