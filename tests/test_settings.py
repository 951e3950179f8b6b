"""Settings come from where they should, and a wrong one says what is wrong with it."""

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from cleats.cli import config
from cleats.settings import ENVIRONMENT, TABLE, SettingError, Settings, Source, resolve, rows

LAW = profile(deadline=None)
"""How laws are tried: a busy machine is slow, and that proves nothing."""


class Home:
    """A user's home, and a repository in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = folder / "project"
        (self.repository / ".git").mkdir(parents=True)

    def load(self, start: Path | None = None, **environ: str) -> Settings:
        return config.load({"HOME": str(self.folder), **environ}, start or self.repository)

    def user_file(self, text: str) -> Path:
        path = self.folder / ".config" / "cleats" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def repository_file(self, text: str) -> Path:
        path = self.repository / ".cleats.toml"
        path.write_text(text)
        return path


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_without_any_source_every_setting_has_its_default(home: Home) -> None:
    settings, defaults = home.load(), Settings()

    for row in rows():
        if row.kind != "folder":
            assert getattr(settings, row.name) == getattr(defaults, row.name)


def test_folders_default_to_the_xdg_ones(home: Home) -> None:
    at_home = home.load()
    moved = home.load(XDG_CACHE_HOME="/var/c", XDG_DATA_HOME="/var/d")

    assert at_home.cache_dir == home.folder / ".cache" / "cleats"
    assert at_home.data_dir == home.folder / ".local" / "share" / "cleats"
    assert (moved.cache_dir, moved.data_dir) == (Path("/var/c/cleats"), Path("/var/d/cleats"))


def test_a_relative_xdg_folder_is_ignored_as_the_standard_says(home: Home) -> None:
    settings = home.load(XDG_CACHE_HOME="here")

    assert settings.cache_dir == home.folder / ".cache" / "cleats"


def test_the_environment_wins_over_the_repository_and_that_over_the_user(home: Home) -> None:
    home.user_file("concurrency = 1\nqueue = 1\ndrain = 1")
    home.repository_file("concurrency = 2\nqueue = 2")

    settings = home.load(CLEATS_CONCURRENCY="3")

    assert (settings.concurrency, settings.queue, settings.drain) == (3, 2, 1)


def test_an_empty_variable_sets_nothing(home: Home) -> None:
    home.user_file("queue = 5")

    assert home.load(CLEATS_QUEUE="").queue == 5


def test_the_repositorys_file_is_found_from_below_it(home: Home) -> None:
    home.repository_file("queue = 7")
    below = home.repository / "src" / "deep"
    below.mkdir(parents=True)

    assert home.load(below).queue == 7


def test_a_file_above_the_repository_is_not_read(home: Home) -> None:
    (home.folder / ".cleats.toml").write_text("queue = 7")

    assert home.load().queue == Settings().queue


def test_a_folder_that_may_not_be_looked_at_is_named(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refused)  # root, who runs tests, may look everywhere

    with pytest.raises(SettingError, match="cannot be looked at") as caught:
        home.load()

    assert str(caught.value).startswith(str(home.repository))


def test_outside_a_repository_only_the_folder_itself_is_read(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / ".cleats.toml").write_text("queue = 7")

    assert config.repository_file(tmp_path) == tmp_path / ".cleats.toml"
    assert config.repository_file(inner) is None


@pytest.mark.parametrize("name", [row.name for row in rows() if row.private])
def test_a_repository_cannot_set_what_is_private(home: Home, name: str) -> None:
    path = home.repository_file(f'{name} = "/tmp/x"')

    with pytest.raises(SettingError) as caught:
        home.load()

    assert str(caught.value).startswith(f"{path}: {name} cannot be set by a repository; use ")


def test_the_users_own_file_can_set_what_is_private(home: Home) -> None:
    home.user_file('cache_dir = "~/big/disk"')

    assert home.load().cache_dir == Path("~/big/disk").expanduser()


def test_a_relative_folder_is_taken_from_where_the_program_started(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.folder)

    assert home.load(CLEATS_CACHE_DIR=".").cache_dir == home.folder


def test_timeouts_read_the_same_from_a_variable_and_from_a_table(home: Home) -> None:
    home.user_file("[timeouts]\nsearch = 30\nbuild_index = 1200.5")

    from_file = home.load().timeouts
    from_variable = home.load(CLEATS_TIMEOUTS="search=30, build_index = 1200.5").timeouts

    assert from_file == from_variable == {"search": 30.0, "build_index": 1200.5}


def test_an_unknown_name_in_a_file_is_refused_with_the_nearest_one(home: Home) -> None:
    path = home.repository_file("concurency = 2")

    with pytest.raises(SettingError) as caught:
        home.load()

    expected = f"{path}: there is no setting 'concurency'; did you mean 'concurrency'?"
    assert str(caught.value) == expected


def test_a_file_that_is_no_toml_is_refused_by_its_path(home: Home) -> None:
    path = home.user_file("concurrency = ")

    with pytest.raises(SettingError, match=str(path)):
        home.load()


def test_a_file_that_is_no_text_is_refused_by_its_path(home: Home) -> None:
    path = home.user_file("")
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(SettingError, match=str(path)):
        home.load()


@pytest.mark.parametrize(
    ("name", "raw", "problem"),
    [
        ("concurrency", "many", "expected a number, not 'many'"),
        ("concurrency", 0, "expected at least 1, not 0"),
        ("concurrency", 1.5, "expected a whole number, not 1.5"),
        ("concurrency", True, "expected a number that is zero or more, not True"),
        ("concurrency", float("inf"), "expected a number, not inf"),
        ("queue", -1, "expected a number that is zero or more, not -1"),
        ("queue", [1], "expected a number, not [1]"),
        ("drain", "nan", "expected a number that is zero or more, not 'nan'"),
        ("log_level", "loud", "expected one of debug, info, warning, error, not 'loud'"),
        ("cache_dir", 5, "expected text, not 5"),
        ("cache_dir", "~nobody-here/x", "nobody here has the home folder of '~nobody-here/x'"),
        ("otlp_endpoint", ["x"], "expected text, not ['x']"),
        ("timeouts", "search", "expected name=seconds,…, not 'search'"),
        ("timeouts", "=3", "expected name=seconds,…, not '=3'"),
        ("timeouts", {"search": "soon"}, "expected a number, not 'soon'"),
        ("timeouts", 3, "expected name=seconds,…, not 3"),
    ],
)
def test_a_bad_value_says_what_was_expected(name: str, raw: object, problem: str) -> None:
    with pytest.raises(SettingError) as caught:
        resolve([Source("a.toml", {name: raw})])

    assert str(caught.value) == f"a.toml: {name}: {problem}"


def test_a_bad_variable_is_named_as_the_user_wrote_it(home: Home) -> None:
    with pytest.raises(SettingError) as caught:
        home.load(CLEATS_QUEUE="x")

    assert str(caught.value) == "CLEATS_QUEUE: expected a number, not 'x'"


def test_a_bad_value_is_refused_even_where_a_stronger_source_hides_it() -> None:
    with pytest.raises(SettingError, match="weak: queue"):
        resolve([Source("strong", {"queue": 1}), Source("weak", {"queue": "x"})])


def test_variables_that_are_no_settings_are_noticed() -> None:
    environ = {"CLEATS_QUEUE": "1", "CLEATS_QUEU": "1", "OTHER": "1"}

    assert config.strays(environ) == ["CLEATS_QUEU"]


def test_every_setting_has_a_sentence_a_type_and_a_variable_of_its_own() -> None:
    table = rows()

    assert len({row.env for row in table}) == len({row.name for row in table}) == len(table)
    assert all(row.about.endswith(".") and row.kind for row in table)


NAMES = list(TABLE)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())
)
GOOD: Mapping[str, st.SearchStrategy[Any]] = {
    "concurrency": st.integers(1, 100),
    "queue": st.integers(0, 100),
    "drain": st.floats(0, 100),
    "log_level": st.sampled_from(["debug", "info", "warning", "error"]),
    "timeouts": st.dictionaries(st.text(string.ascii_lowercase, min_size=1), st.floats(0, 100)),
}


@LAW
@given(name=st.sampled_from(NAMES), raw=VALUES)
@example(name="concurrency", raw=float("inf"))
def test_any_value_is_either_taken_or_refused_in_words(name: str, raw: object) -> None:
    try:
        settings = resolve([Source("file", {name: raw})])
    except SettingError as error:
        assert str(error).startswith(f"file: {name}: ")  # noqa: PT017 - either way is right
    else:
        assert isinstance(settings, Settings)


@LAW
@given(st.lists(st.fixed_dictionaries({}, optional=GOOD), max_size=4))
def test_the_strongest_source_that_has_a_setting_decides_it(
    layers: list[dict[str, Any]],
) -> None:
    settings = resolve([Source(str(i), values) for i, values in enumerate(layers)])

    for name in GOOD:
        chosen = [values[name] for values in layers if name in values]
        assert getattr(settings, name) == (chosen[0] if chosen else getattr(Settings(), name))


@LAW
@given(st.fixed_dictionaries({}, optional=GOOD))
def test_what_a_file_can_say_a_variable_can_say_too(values: dict[str, Any]) -> None:
    spelt = {
        name: ",".join(f"{tool}={seconds!r}" for tool, seconds in value.items())
        if isinstance(value, dict)
        else str(value)
        for name, value in values.items()
    }
    environ = {TABLE[name].variable: text for name, text in spelt.items()}

    source = config._environment(environ)

    assert source.name == ENVIRONMENT
    assert resolve([source]) == resolve([Source("file", values)])
