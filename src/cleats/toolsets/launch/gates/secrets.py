"""No changed file may contain a password, a token or a key, not even in a code block.

A random-looking value counts only when it is assigned to something named like a secret, because
hashes and sample data are common. A path of one person's machine is a warning.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from cleats.system.front_matter import set_front_matter_keys
from cleats.toolsets.launch.gates.model import FixCase, FixResult, Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.page_edits import list_code_lines, remove_code_blocks, remove_lines
from cleats.toolsets.launch.gates.site import LaunchSite

_HOME_FOLDER_REGEX: Final = (
    r"(?:\.[a-z][\w.-]*|[Dd]ocuments|[Dd]esktop|[Dd]ownloads|[Pp]rojects?|[Ww]orkspaces?|[Rr]epos?"
    r"|[Ss]ource|src|code|dev|work|git|go|tmp|venvs?|bin|lib|opt|data|build)"
)
_HOST_PATH_PATTERN: Final = re.compile(
    # Not inside an address or behind a variable, and not the target of a link.
    r"(?<![\w.:/}~@-])(?<!\]\()(?<!href=[\"'])(?<!src=[\"'])(?:file://)?"
    rf"(?:/home/(?P<linux>\w[\w.-]{{0,63}})/{_HOME_FOLDER_REGEX}(?![\w-])"
    r"|/Users/(?P<mac>\w[\w.-]{0,63})/[\w.]"
    r"|[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)(?P<windows>\w[\w.-]{0,63})(?:\\|/))"
)
_GENERIC_USER_PATTERN: Final = re.compile(
    r"(?i)users?\d*|(?:my|your)?[-_]?(?:user[-_]?)?name|my[-_]?user|you|me|example|some(?:one|body)"
    r"|alice|bob|jane|joe|john|(?:jane|john)?[-_.]?doe|foo|bar|test(?:er)?|public|default|shared|all"
    r"|guest|runner(?:admin)?|vsts|circleci|travis|jenkins|ci|build|ubuntu|debian|centos|fedora"
    r"|ec2-user|azureuser|vagrant|pi|node|app(?:user)?|web|www(?:-data)?|dev(?:eloper)?"
    r"|(?:container)?admin(?:istrator)?|root|git|linuxbrew|jovyan|coder|vscode|codespace|gitpod"
    r"|docker|nonroot|nobody|kaggle|colab"
)
"""User names that stand for any reader, and the users of images and build machines."""


def has_host_path(line: str) -> bool:
    """Return whether a line contains a path of one person's machine."""
    return any(
        not _GENERIC_USER_PATTERN.fullmatch(match["linux"] or match["mac"] or match["windows"])
        for match in _HOST_PATH_PATTERN.finditer(line)
    )


SECRET_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
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
_LOOSE_PATTERN_NAMES = frozenset({"a password in an address", "an OpenAI key"})
"""Patterns that ordinary text can match."""
_ASSIGNED_SECRET_PATTERN = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|auth(?:orization)?)"
    r"[\"']?\s{0,3}(?:=>|:=|=|:)\s{0,3}(?:bearer\s{1,3}|basic\s{1,3})?"
    r"[\"']?(?P<value>[A-Za-z0-9+/_.=-]{16,512})"
)
_PLACEHOLDER_PATTERN = re.compile(
    r"(?i)your|example|sample|placeholder|changeme|replace|dummy|redacted|xxx|\.\.\.|<|\$\{|"
    r"environ|getenv|process\.env|password@|user:pass|username:|foo|test-?key|abcdef|123456"
)


def check_secrets(site: LaunchSite) -> Iterator[GateMessage]:
    for path, text in site.iterate_changed_texts():
        for number, line in enumerate(text.split("\n"), start=1):
            for name in find_secrets(line):
                yield LEAKED_SECRET.draft(f"the line holds what looks like {name}", path, number)
            if has_host_path(line) and site.is_from_launch(path, number):
                yield HOST_PATH.draft("the line holds a path that only exists on somebody's machine", path, number)


def find_secrets(line: str) -> list[str]:
    """Return the kinds of secrets in a line; the secret itself is never repeated."""
    matches = [(name, match.group()) for name, shape in SECRET_PATTERNS if (match := shape.search(line))]
    secret_kinds = [name for name, text in matches if name not in _LOOSE_PATTERN_NAMES or not _is_harmless(text)]
    values = [match["value"] for match in _ASSIGNED_SECRET_PATTERN.finditer(line)]
    if any(_is_random_looking(value) and not _PLACEHOLDER_PATTERN.search(value) for value in values):
        return secret_kinds or ["a secret that was written out"]
    return secret_kinds


def _is_harmless(text: str) -> bool:
    return bool(_PLACEHOLDER_PATTERN.search(text)) or ("://" not in text and not _is_random_looking(text))


def _is_random_looking(value: str) -> bool:
    """Return whether a value looks random: letters and digits mixed, with high entropy."""
    if not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):  # a word, a path, a name
        return False
    counts = Counter(value)
    entropy_bits = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return entropy_bits >= 3.3


def fix_secrets(case: FixCase) -> FixResult:
    """Remove the line; in a code block, the whole block, which would not work without the line."""
    if case.lines & list_code_lines(case.file):
        return remove_code_blocks(case)
    if all(number >= case.file.body_line for number in case.lines):
        return remove_lines(case.text, case.lines)
    lines = [case.text.split("\n")[number - 1].lstrip() for number in case.lines]
    keys = {key: None for key in case.file.front if any(line.startswith(key) for line in lines)}
    return set_front_matter_keys(case.text, keys) if keys and "title" not in keys else None


LEAKED_SECRET = IssueKind(
    "GATE_SECRET", "blocker", "Take the line away, and revoke the secret: it has been written down.", fix_secrets
)
HOST_PATH = IssueKind(
    "GATE_HOST_PATH", "warn", "Write a path that everybody has, or a name that stands for anybody.", fix_secrets
)

GATE = Gate("secrets", __doc__, check_secrets)
