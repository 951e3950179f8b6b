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
from cleats.settings.schema import SETTINGS_BY_NAME, Setting, Settings, SettingsWithEnvironment, get_environment

__all__ = [
    "ENVIRONMENT_SOURCE",
    "SETTINGS_BY_NAME",
    "Setting",
    "SettingError",
    "SettingRow",
    "Settings",
    "SettingsSource",
    "SettingsWithEnvironment",
    "get_environment",
    "list_setting_rows",
    "resolve_settings",
]
