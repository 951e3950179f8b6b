"""Which repository a product has: what the profile knows, then what the operator's files say.

A file is TOML with a table for each product:

    [[product]]
    family = "3d"
    platform = "python"
    repo_url = "https://github.com/owner/name"
"""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.profiles.parts import Registered


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    product: tuple[Registered, ...] = ()


def find(profile: Profile, files: Sequence[Path], family: str, platform: str) -> Registered | None:
    """The repository of a product; one in a file of the operator's wins.

    Raises:
        ToolError: INVALID_INPUT, a file of the operator's cannot be used.
    """
    for each in (*_read(files), *profile.repositories.registry):
        names = profile.family(each.family), profile.platform(each.platform)
        if [name.name if name else "" for name in names] == [family, platform]:
            return each
    return None


def _read(files: Sequence[Path]) -> Iterator[Registered]:
    for file in files:
        try:
            document = tomllib.loads(file.read_text(encoding="utf-8"))
            yield from msgspec.convert(document, _File).product
        except (OSError, ValueError) as error:  # msgspec's and TOML's errors are of this kind
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ToolError(
                ErrorCode.INVALID_INPUT,
                f"the registry {file.name} cannot be used: {reason}",
                hint="It is named by the setting launch_registry.",
            ) from None
