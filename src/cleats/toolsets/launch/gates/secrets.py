"""No changed file holds a password, a token or a key, not even in a code block.

Known shapes are blockers. A long random-looking value that is given to something named like a
secret is one too; other random-looking text is not, since hashes and sample data abound. A path of
somebody's machine is a warning.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator

from cleats.toolsets.launch.gates.host_paths import holds_host_path
from cleats.toolsets.launch.gates.model import Gate, Said, blocker, warning
from cleats.toolsets.launch.gates.site import Site

SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(shape))
    for name, shape in (
        ("a private key", r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
        ("a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})"),
        ("a GitLab token", r"\bgl(?:pat|ptt|dt|rt|cbt|ft|soat|agent)-[A-Za-z0-9_-]{20,64}\b"),
        ("an AWS access key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
        ("a Google API key", r"\bAIza[A-Za-z0-9_-]{35}"),
        ("a Google OAuth secret", r"\bGOCSPX-[A-Za-z0-9_-]{28}"),
        ("a Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,250}"),
        ("a Slack webhook", r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{40,}"),
        ("a Stripe key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{20,250}"),
        ("an OpenAI key", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,200}"),
        ("an Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{24,200}"),
        ("an npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
        ("a PyPI token", r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
        ("a NuGet key", r"\boy2[a-z0-9]{43}\b"),
        ("a SendGrid key", r"\bSG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}\b"),
        ("a Twilio key", r"\bSK[0-9a-f]{32}\b"),
        ("an Azure storage key", r"\bAccountKey=[A-Za-z0-9+/]{80,90}={0,2}"),
        ("a Hugging Face token", r"\bhf_[A-Za-z0-9]{30,50}\b"),
        ("a JSON web token", r"\beyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10,1000}"),
        ("a password in an address", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"<>]+:[^\s/@'\"<>]+@"),
    )
)
_LOOSE = frozenset({"a password in an address", "an OpenAI key"})
"""Shapes that ordinary text can have."""
_GIVEN = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|auth(?:orization)?)"
    r"[\"']?\s{0,3}(?:=>|:=|=|:)\s{0,3}(?:bearer\s{1,3}|basic\s{1,3})?"
    r"[\"']?(?P<value>[A-Za-z0-9+/_.=-]{16,512})"
)
_PRETEND = re.compile(
    r"(?i)your|example|sample|placeholder|changeme|replace|dummy|redacted|xxx|\.\.\.|<|\$\{|"
    r"environ|getenv|process\.env|password@|user:pass|username:|foo|test-?key|abcdef|123456"
)


def check(site: Site) -> Iterator[Said]:
    for change in site.changes:
        text = site.text(change.path) if change.kind == "file" else None
        if text is None:
            continue
        for number, line in enumerate(text.split("\n"), start=1):
            for name in secrets(line):
                message = f"the line holds what looks like {name}"
                yield blocker("GATE_SECRET", message, change.path, number)
            if holds_host_path(line) and site.ours(change.path, number):
                message = "the line holds a path that only exists on somebody's machine"
                yield warning("GATE_HOST_PATH", message, change.path, number)


def secrets(line: str) -> list[str]:
    """What kinds of secrets a line holds; the secret itself is never repeated."""
    found = []
    for name, shape in SHAPES:
        match = shape.search(line)
        if match and not (name in _LOOSE and _harmless(match.group())):
            found.append(name)
    if not found:
        found.extend(
            "a secret that was written out"
            for match in _GIVEN.finditer(line)
            if not _PRETEND.search(match.group("value")) and _random(match.group("value"))
        )
    return list(dict.fromkeys(found))


def _harmless(text: str) -> bool:
    return bool(_PRETEND.search(text)) or ("://" not in text and not _random(text))


def _random(value: str) -> bool:
    """Whether a value looks drawn by chance: letters and digits mixed, and hard to guess."""
    kinds = sum(
        any(test(sign) for sign in value) for test in (str.isupper, str.islower, str.isdigit)
    )
    if kinds < 2 or not any(map(str.isdigit, value)):  # a word, a path, a name
        return False
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return bits >= 3.3


GATE = Gate(name="secrets", purpose=__doc__, check=check, local=60.0, strict=120.0)
