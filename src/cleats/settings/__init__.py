"""The settings that an operator can change, each with a name, a type and a default.

The order of precedence is command line, environment, `.cleats.toml` in the repository, the user's
file. The command line reads them; here they are only checked and merged.
"""

from cleats.settings.loader import (
    ENVIRONMENT_SOURCE,
    SettingError,
    SettingRow,
    SettingsSource,
    list_setting_rows,
    resolve_settings,
)
from cleats.settings.schema import (
    SETTINGS_BY_NAME,
    Setting,
    Settings,
    SettingsWithEnvironment,
    add_environment,
    get_environment,
    get_setting,
    make_settings,
    replace_settings,
)

__all__ = [
    "ENVIRONMENT_SOURCE",
    "SETTINGS_BY_NAME",
    "Setting",
    "SettingError",
    "SettingRow",
    "Settings",
    "SettingsSource",
    "SettingsWithEnvironment",
    "add_environment",
    "get_environment",
    "get_setting",
    "list_setting_rows",
    "make_settings",
    "replace_settings",
    "resolve_settings",
]
