"""Licences: the SPDX id of a licence text or of the name in a manifest."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

_TABLES: Final = tomllib.loads(Path(__file__).with_name("licences.toml").read_text(encoding="utf-8"))
LICENCE_NAMES: Final[Mapping[str, str]] = _TABLES["names"] | {
    f"{prefix}GPL-{version}-{grant}": f"GNU {kind}General Public License v{version} {grant.replace('-', ' ')}"
    for prefix, kind, versions in (("", "", "2.0 3.0"), ("L", "Lesser ", "2.1 3.0"), ("A", "Affero ", "3.0"))
    for version in versions.split()
    for grant in ("only", "or-later")
}
"""Names of the licences that are recognised; any other SPDX id is its own name."""

_SPDX_EXPRESSION_PATTERN: Final = re.compile(
    r"\(?[A-Za-z0-9][A-Za-z0-9.+-]*\)?(?: (?:AND|OR|WITH) \(?[A-Za-z0-9][A-Za-z0-9.+-]*\)?)*"
)
_LICENCE_FILE_PATTERN: Final = re.compile(
    r"(licen[sc]e|copying|unlicen[sc]e)([-._][\w.-]+)?(\.(md|txt|rst))?", re.IGNORECASE
)
_OR_LATER_PATTERN: Final = re.compile(r"either version [23](\.\d)? of the licen[sc]e,? or", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence and where it is stated. `spdx` is "" for one that is not recognised."""

    spdx: str
    path: str

    @property
    def name(self) -> str:
        return LICENCE_NAMES.get(self.spdx, self.spdx)


def parse_licence_name(words: str) -> str:
    """Return the SPDX expression for a licence name in a manifest; "" when it is ambiguous."""
    text = " ".join(words.split()).removeprefix("License :: ").removeprefix("OSI Approved :: ")
    ids_by_lowercase = {name.lower(): name for name in LICENCE_NAMES}
    if text.lower() in ids_by_lowercase:
        return ids_by_lowercase[text.lower()]
    for spdx, pattern in _TABLES["spellings"].items():
        if re.fullmatch(pattern, text, re.IGNORECASE):
            return str(spdx)
    parts = re.split(r" (?:AND|OR|WITH) ", text)
    plain = [part.strip("()") for part in parts]
    if len(parts) > 1 and _SPDX_EXPRESSION_PATTERN.fullmatch(text) and all(_is_spdx_id(part) for part in plain):
        return text
    if "/" in text and all(parse_licence_name(part) for part in text.split("/")):  # Cargo, long ago
        return " OR ".join(parse_licence_name(part) for part in text.split("/"))
    return text if _is_spdx_id(text) and re.search(r"-\d", text) else ""


def identify_licence_text(text: str) -> str:
    """Return the SPDX id of a licence text; "" when it is not recognised."""
    body = " ".join(re.sub(r"[^a-z0-9.]+", " ", text.lower()).split())
    grants = _TABLES["grants"]
    if sum(grant in body for grant in grants.values()) > 1:
        return ""  # several licences in one file: it is unclear which applies to what
    for spdx, marks in _TABLES["marks"].items():
        if any(all(part in body for part in mark.format(**grants).split("|")) for mark in marks):
            # A note before the text of a GNU licence may grant later versions.
            return str(spdx.replace("-only", "-or-later") if _OR_LATER_PATTERN.search(text[:400]) else spdx)
    return ""


def find_licence_files(tree: CheckoutTree) -> list[str]:
    """Return the top-level licence files, the plainest name first."""
    candidates = [path for path in tree.paths if "/" not in path and _LICENCE_FILE_PATTERN.fullmatch(path)]
    return sorted(candidates, key=lambda path: (len(PurePosixPath(path).stem), path))


def _is_spdx_id(word: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]*", word))
