"""Licences: the SPDX id of a licence text or of the name in a manifest."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

LICENCE_NAMES: Final = {
    "MIT": "MIT License",
    "MIT-0": "MIT No Attribution",
    "Apache-2.0": "Apache License 2.0",
    "BSD-2-Clause": "BSD 2-Clause License",
    "BSD-3-Clause": "BSD 3-Clause License",
    "0BSD": "BSD Zero Clause License",
    "ISC": "ISC License",
    "MPL-2.0": "Mozilla Public License 2.0",
    **{
        f"{prefix}GPL-{version}-{grant}": f"GNU {kind}General Public License v{version} {grant.replace('-', ' ')}"
        for prefix, kind, versions in (("", "", "2.0 3.0"), ("L", "Lesser ", "2.1 3.0"), ("A", "Affero ", "3.0"))
        for version in versions.split()
        for grant in ("only", "or-later")
    },
    "EPL-2.0": "Eclipse Public License 2.0",
    "BSL-1.0": "Boost Software License 1.0",
    "Unlicense": "The Unlicense",
    "Zlib": "zlib License",
    "CC0-1.0": "Creative Commons Zero v1.0 Universal",
    "MIT-CMU": "CMU License",
    "HPND": "Historical Permission Notice and Disclaimer",
    "Artistic-2.0": "Artistic License 2.0",
    "OFL-1.1": "SIL Open Font License 1.1",
    "EUPL-1.2": "European Union Public License 1.2",
    "MS-PL": "Microsoft Public License",
    "UPL-1.0": "Universal Permissive License v1.0",
    "WTFPL": "Do What The F*ck You Want To Public License",
    "PSF-2.0": "Python Software Foundation License 2.0",
}
"""Names of the licences that are recognised; any other SPDX id is its own name."""

_LICENCE_NAME_PATTERNS: Final[tuple[tuple[str, str], ...]] = (
    (r"(the )?mit( licen[sc]e)?( \(mit\))?|expat( licen[sc]e)?", "MIT"),
    (r"mit no attribution( licen[sc]e)?( \(mit-0\))?", "MIT-0"),
    (r"(the )?apache([- ]software)?([- ]licen[sc]e)?,?[- ]*(version )?v?2(\.0)?( licen[sc]e)?", "Apache-2.0"),
    (r"asl ?2(\.0)?|al2", "Apache-2.0"),
    (r"(the )?(new|modified|revised|3-clause)[- ]bsd( licen[sc]e)?", "BSD-3-Clause"),
    (r"bsd[- ]3([- ]clause)?( licen[sc]e)?|bsd 3-clause[^/]*", "BSD-3-Clause"),
    (r"(the )?(simplified|2-clause|freebsd)[- ]bsd( licen[sc]e)?", "BSD-2-Clause"),
    (r"bsd[- ]2([- ]clause)?( licen[sc]e)?|bsd 2-clause[^/]*", "BSD-2-Clause"),
    (r"isc( licen[sc]e)?( \(iscl\))?", "ISC"),
    (r"mozilla public licen[sc]e,?( version)? 2\.0( \(mpl 2\.0\))?|mpl[- ]?2(\.0)?", "MPL-2.0"),
    (r"(gnu )?gplv?-?3(\.0)?\+|gnu general public licen[sc]e v3 or later( \(gplv3\+\))?", "GPL-3.0-or-later"),
    (r"(gnu )?gplv?-?2(\.0)?\+|gnu general public licen[sc]e v2 or later( \(gplv2\+\))?", "GPL-2.0-or-later"),
    (r"gplv3|gpl-3\.0|gnu general public licen[sc]e v3( \(gplv3\))?", "GPL-3.0-only"),
    (r"gplv2|gpl-2\.0|gnu general public licen[sc]e v2( \(gplv2\))?", "GPL-2.0-only"),
    (r"lgplv3\+|gnu lesser general public licen[sc]e v3 or later( \(lgplv3\+\))?", "LGPL-3.0-or-later"),
    (r"lgplv3|lgpl-3\.0|gnu lesser general public licen[sc]e v3( \(lgplv3\))?", "LGPL-3.0-only"),
    (r"agplv3\+|gnu affero general public licen[sc]e v3 or later.*", "AGPL-3.0-or-later"),
    (r"agplv3|agpl-3\.0|gnu affero general public licen[sc]e v3.*", "AGPL-3.0-only"),
    (r"(the )?unlicen[sc]e( \(unlicense\))?", "Unlicense"),
    (r"boost software licen[sc]e 1\.0( \(bsl-1\.0\))?", "BSL-1.0"),
    (r"zlib( licen[sc]e)?|zlib/libpng licen[sc]e", "Zlib"),
    (r"python software foundation licen[sc]e|psf(-2\.0)?|psfl", "PSF-2.0"),
    (r"eclipse public licen[sc]e( -)?( v)? ?2\.0( \(epl-2\.0\))?", "EPL-2.0"),
)
"""Spellings in use. A bare "BSD" or "GPL" names no single licence, so it is not listed."""

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
    for pattern, spdx in _LICENCE_NAME_PATTERNS:
        if re.fullmatch(pattern, text, re.IGNORECASE):
            return spdx
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
    if sum(grant in body for grant in _LICENCE_GRANTS) > 1:
        return ""  # several licences in one file: it is unclear which applies to what
    for mark, spdx in _LICENCE_TEXT_MARKS:
        if all(part in body for part in mark.split("|")):
            # A note before the text of a GNU licence may grant later versions.
            return spdx.replace("-only", "-or-later") if _OR_LATER_PATTERN.search(text[:400]) else spdx
    return ""


def find_licence_files(tree: CheckoutTree) -> list[str]:
    """Return the top-level licence files, the plainest name first."""
    candidates = [path for path in tree.paths if "/" not in path and _LICENCE_FILE_PATTERN.fullmatch(path)]
    return sorted(candidates, key=lambda path: (len(PurePosixPath(path).stem), path))


def _is_spdx_id(word: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]*", word))


_BSD_GRANT: Final = "redistributions of source code must retain the above copyright"
_MIT_GRANT: Final = "permission is hereby granted free of charge to any person obtaining a copy"
_ISC_GRANT: Final = "permission to use copy modify and or distribute this software for any purpose"
_APACHE_GRANT: Final = "terms and conditions for use reproduction"
_ZLIB_DISCLAIMER: Final = "this software is provided as is without any express or implied warranty"
_LICENCE_GRANTS: Final = (_BSD_GRANT, _MIT_GRANT, _ISC_GRANT, _APACHE_GRANT)
"""One sentence of each large family of licences."""

_LICENCE_TEXT_MARKS: Final[tuple[tuple[str, str], ...]] = (
    (f"apache license|version 2.0|{_APACHE_GRANT}", "Apache-2.0"),
    ("mozilla public license version 2.0", "MPL-2.0"),
    ("gnu affero general public license|version 3", "AGPL-3.0-only"),
    ("gnu lesser general public license|version 3", "LGPL-3.0-only"),
    ("gnu lesser general public license|version 2.1", "LGPL-2.1-only"),
    ("gnu general public license|version 3", "GPL-3.0-only"),
    ("gnu general public license|version 2", "GPL-2.0-only"),
    ("eclipse public license v 2.0", "EPL-2.0"),
    ("boost software license version 1.0", "BSL-1.0"),
    ("this is free and unencumbered software released into the public domain", "Unlicense"),
    ("cc0 1.0 universal", "CC0-1.0"),
    (f"{_BSD_GRANT}|neither the name", "BSD-3-Clause"),
    (f"{_BSD_GRANT}|names of its contributors", "BSD-3-Clause"),
    (f"{_BSD_GRANT}|redistributions in binary form must reproduce", "BSD-2-Clause"),
    (f"{_MIT_GRANT}|the above copyright notice and this permission notice", "MIT"),
    (_MIT_GRANT, "MIT-0"),
    (f"{_ISC_GRANT}|provided that the above copyright notice", "ISC"),
    (_ISC_GRANT, "0BSD"),
    (f"{_ZLIB_DISCLAIMER}|altered source versions must be plainly marked", "Zlib"),
    ("python software foundation license version 2", "PSF-2.0"),
)
"""Marks that must all occur in the text, the more specific licence first."""
