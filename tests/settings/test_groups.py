"""Tests of the groups of settings: nested inside the program, flat names outside."""

from pathlib import Path

import pytest

from cleats.settings import (
    SETTINGS_BY_NAME,
    Settings,
    add_environment,
    get_environment,
    get_setting,
    make_settings,
    replace_settings,
)


def test_flat_names_lead_into_the_groups() -> None:
    settings = make_settings(launch_hugo="/bin/hugo", skill_dirs=(Path("/skills"),), index_git="off", drain=1.0)

    assert (settings.launch.hugo, settings.skills.dirs) == ("/bin/hugo", (Path("/skills"),))
    assert (settings.code.index_git, settings.drain) == ("off", 1.0)


@pytest.mark.parametrize("name", SETTINGS_BY_NAME)
def test_every_setting_can_be_replaced_and_read_by_its_flat_name(name: str) -> None:
    changed = replace_settings(Settings(), **{name: "other"})

    assert get_setting(changed, name) == "other"
    assert get_setting(replace_settings(changed, **{name: SETTINGS_BY_NAME[name].default}), name) == get_setting(
        Settings(), name
    )


def test_several_values_of_one_group_are_replaced_together() -> None:
    settings = replace_settings(make_settings(http_token="a", http_linger=1.0), http_token="b", http_probes="open")

    assert (settings.http.token, settings.http.linger, settings.http.probes) == ("b", 1.0, "open")


def test_replaced_settings_keep_their_environment() -> None:
    settings = replace_settings(add_environment(Settings(), {"A": "1"}), launch_site="x")

    assert get_environment(settings) == {"A": "1"}
    assert settings.launch.site == "x"


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError, match="launch_nothing"):
        make_settings(launch_nothing=1)
