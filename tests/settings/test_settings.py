"""Tests of settings: they come from the right source, and a wrong one is explained."""

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from cleats.cli import settings_loader
from cleats.settings import (
    ENVIRONMENT_SOURCE,
    SETTINGS_BY_NAME,
    SettingError,
    Settings,
    SettingsSource,
    get_setting,
    resolve_settings,
)

LAW_SETTINGS = profile(deadline=None)
"""The settings of property tests, without a deadline: a slow machine proves nothing."""


class UserHome:
    """A user's home, and a repository in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = folder / "project"
        (self.repository / ".git").mkdir(parents=True)

    def load(self, start: Path | None = None, **environ: str) -> Settings:
        return settings_loader.load_settings({"HOME": str(self.folder), **environ}, start or self.repository)

    def write_user_file(self, text: str) -> Path:
        path = self.folder / ".config" / "cleats" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def write_repository_file(self, text: str) -> Path:
        path = self.repository / ".cleats.toml"
        path.write_text(text)
        return path


@pytest.fixture
def home(tmp_path: Path) -> UserHome:
    return UserHome(tmp_path)


def test_without_any_source_every_setting_has_its_default(home: UserHome) -> None:
    settings, defaults = home.load(), Settings()

    for row in SETTINGS_BY_NAME.values():
        if row.kind_text != "folder":
            assert get_setting(settings, row.name) == get_setting(defaults, row.name)


def test_folders_default_to_the_xdg_ones(home: UserHome) -> None:
    at_home = home.load()
    moved_settings = home.load(XDG_CACHE_HOME="/var/c", XDG_DATA_HOME="/var/d")

    assert at_home.cache_dir == home.folder / ".cache" / "cleats"
    assert at_home.data_dir == home.folder / ".local" / "share" / "cleats"
    assert (moved_settings.cache_dir, moved_settings.data_dir) == (Path("/var/c/cleats"), Path("/var/d/cleats"))


def test_a_relative_xdg_folder_is_ignored_as_the_standard_says(home: UserHome) -> None:
    settings = home.load(XDG_CACHE_HOME="here")

    assert settings.cache_dir == home.folder / ".cache" / "cleats"


def test_the_environment_wins_over_the_repository_and_that_over_the_user(home: UserHome) -> None:
    home.write_user_file("concurrency = 1\nqueue = 1\ndrain = 1")
    home.write_repository_file("concurrency = 2\nqueue = 2")

    settings = home.load(CLEATS_CONCURRENCY="3")

    assert (settings.concurrency, settings.queue, settings.drain) == (3, 2, 1)


def test_an_empty_variable_sets_nothing(home: UserHome) -> None:
    home.write_user_file("queue = 5")

    assert home.load(CLEATS_QUEUE="").queue == 5


def test_the_repositorys_file_is_found_from_below_it(home: UserHome) -> None:
    home.write_repository_file("queue = 7")
    below = home.repository / "src" / "deep"
    below.mkdir(parents=True)

    assert home.load(below).queue == 7


def test_a_file_above_the_repository_is_not_read(home: UserHome) -> None:
    (home.folder / ".cleats.toml").write_text("queue = 7")

    assert home.load().queue == Settings().queue


def test_a_folder_that_may_not_be_looked_at_is_named(home: UserHome, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_permission_error(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", raise_permission_error)  # root, who runs tests, may look everywhere

    with pytest.raises(SettingError, match="permission denied") as caught:
        home.load()

    assert str(caught.value).startswith(str(home.repository))


def test_outside_a_repository_only_the_folder_itself_is_read(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / ".cleats.toml").write_text("queue = 7")

    assert settings_loader.find_repository_config(tmp_path) == tmp_path / ".cleats.toml"
    assert settings_loader.find_repository_config(inner) is None


@pytest.mark.parametrize("name", [row.name for row in SETTINGS_BY_NAME.values() if row.private])
def test_a_repository_cannot_set_what_is_private(home: UserHome, name: str) -> None:
    path = home.write_repository_file(f'{name} = "/tmp/x"')

    with pytest.raises(SettingError) as caught:
        home.load()

    assert str(caught.value).startswith(f"{path}: {name} cannot be set by a repository; use ")


def test_the_users_own_file_can_set_what_is_private(home: UserHome) -> None:
    home.write_user_file('cache_dir = "~/big/disk"')

    assert home.load().cache_dir == Path("~/big/disk").expanduser()


def test_a_relative_folder_is_taken_from_where_the_program_started(
    home: UserHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.folder)

    assert home.load(CLEATS_CACHE_DIR=".").cache_dir == home.folder


def test_timeouts_read_the_same_from_a_variable_and_from_a_table(home: UserHome) -> None:
    home.write_user_file("[timeouts]\nsearch = 30\nbuild_index = 1200.5")

    from_file = home.load().timeouts
    from_variable = home.load(CLEATS_TIMEOUTS="search=30, build_index = 1200.5").timeouts

    assert from_file == from_variable == {"search": 30.0, "build_index": 1200.5}


def test_an_unknown_name_in_a_file_is_refused_with_the_nearest_one(home: UserHome) -> None:
    path = home.write_repository_file("concurency = 2")

    with pytest.raises(SettingError) as caught:
        home.load()

    expected = f"{path}: unknown setting 'concurency'; did you mean 'concurrency'?"
    assert str(caught.value) == expected


def test_a_file_that_is_no_toml_is_refused_by_its_path(home: UserHome) -> None:
    path = home.write_user_file("concurrency = ")

    with pytest.raises(SettingError, match=str(path)):
        home.load()


def test_a_file_that_is_no_text_is_refused_by_its_path(home: UserHome) -> None:
    path = home.write_user_file("")
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
        ("cache_dir", "~nobody-here/x", "cannot expand the home folder in '~nobody-here/x': no such user"),
        ("otlp_endpoint", ["x"], "expected text, not ['x']"),
        ("timeouts", "search", "expected name=seconds,…, not 'search'"),
        ("timeouts", "=3", "expected name=seconds,…, not '=3'"),
        ("timeouts", {"search": "soon"}, "expected a number, not 'soon'"),
        ("timeouts", 3, "expected name=seconds,…, not 3"),
    ],
)
def test_a_bad_value_says_what_was_expected(name: str, raw: object, problem: str) -> None:
    with pytest.raises(SettingError) as caught:
        resolve_settings([SettingsSource("a.toml", {name: raw})])

    assert str(caught.value) == f"a.toml: {name}: {problem}"


def test_a_bad_variable_is_named_as_the_user_wrote_it(home: UserHome) -> None:
    with pytest.raises(SettingError) as caught:
        home.load(CLEATS_QUEUE="x")

    assert str(caught.value) == "CLEATS_QUEUE: expected a number, not 'x'"


def test_a_bad_value_is_refused_even_where_a_stronger_source_hides_it() -> None:
    with pytest.raises(SettingError, match="weak: queue"):
        resolve_settings([SettingsSource("strong", {"queue": 1}), SettingsSource("weak", {"queue": "x"})])


def test_variables_that_are_no_settings_are_noticed() -> None:
    environ = {"CLEATS_QUEUE": "1", "CLEATS_QUEU": "1", "OTHER": "1"}

    assert settings_loader.find_unknown_variables(environ) == ["CLEATS_QUEU"]


def test_every_setting_has_a_sentence_a_type_and_a_variable_of_its_own() -> None:
    table = SETTINGS_BY_NAME.values()

    assert len({row.variable for row in table}) == len({row.name for row in table}) == len(table)
    assert all(row.about.endswith(".") and row.kind_text for row in table)


SETTING_NAMES = list(SETTINGS_BY_NAME)
ANY_VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers()))
VALID_VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "concurrency": st.integers(1, 100),
    "queue": st.integers(0, 100),
    "drain": st.floats(0, 100),
    "log_level": st.sampled_from(["debug", "info", "warning", "error"]),
    "timeouts": st.dictionaries(st.text(string.ascii_lowercase, min_size=1), st.floats(0, 100)),
}


@LAW_SETTINGS
@given(name=st.sampled_from(SETTING_NAMES), raw=ANY_VALUES)
@example(name="concurrency", raw=float("inf"))
def test_any_value_is_either_taken_or_refused_in_words(name: str, raw: object) -> None:
    try:
        settings = resolve_settings([SettingsSource("file", {name: raw})])
    except SettingError as error:
        assert str(error).startswith(f"file: {name}: ")  # noqa: PT017 - either way is right
    else:
        assert isinstance(settings, Settings)


@LAW_SETTINGS
@given(st.lists(st.fixed_dictionaries({}, optional=VALID_VALUES), max_size=4))
def test_the_strongest_source_that_has_a_setting_decides_it(
    layers: list[dict[str, Any]],
) -> None:
    settings = resolve_settings([SettingsSource(str(i), values) for i, values in enumerate(layers)])

    for name in VALID_VALUES:
        candidates = [values[name] for values in layers if name in values]
        assert get_setting(settings, name) == (candidates[0] if candidates else get_setting(Settings(), name))


@LAW_SETTINGS
@given(st.fixed_dictionaries({}, optional=VALID_VALUES))
def test_what_a_file_can_say_a_variable_can_say_too(values: dict[str, Any]) -> None:
    spelt = {
        name: ",".join(f"{tool}={seconds!r}" for tool, seconds in value.items())
        if isinstance(value, dict)
        else str(value)
        for name, value in values.items()
    }
    environ = {SETTINGS_BY_NAME[name].variable: text for name, text in spelt.items()}

    source = settings_loader._read_environment(environ)

    assert source.name == ENVIRONMENT_SOURCE
    assert resolve_settings([source]) == resolve_settings([SettingsSource("file", values)])
