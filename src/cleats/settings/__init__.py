"""What the operator decides: one table of settings, each with a name, a type and a default.

The order is command line, environment, `.cleats.toml` in the repository, the user's file. Reading
them is the command line's job; here they are only checked and put together.
"""

from cleats.settings.sources import ENVIRONMENT, Row, SettingError, Source, resolve, rows
from cleats.settings.table import TABLE, Setting, Settings, Surrounded, surroundings

__all__ = [
    "ENVIRONMENT",
    "TABLE",
    "Row",
    "Setting",
    "SettingError",
    "Settings",
    "Source",
    "Surrounded",
    "resolve",
    "rows",
    "surroundings",
]
