"""Paths that only exist on somebody's machine, and name who it belongs to.

Documentation is full of paths that are nobody's, as `/home/user`, and of addresses that look like
paths, as `/home/start/`. So a name that stands for anybody is none, and below `/home` there must
be a folder that people have there.
"""

import re
from typing import Final

_FOLDERS: Final = (
    r"(?:\.[a-z][\w.-]*|[Dd]ocuments|[Dd]esktop|[Dd]ownloads|[Pp]rojects?|[Ww]orkspaces?|[Rr]epos?"
    r"|[Ss]ource|src|code|dev|work|git|go|tmp|venvs?|bin|lib|opt|data|build)"
)
_PATHS: Final = re.compile(
    # Not inside an address or behind a variable, and not the target of a link.
    r"(?<![\w.:/}~@-])(?<!\]\()(?<!href=[\"'])(?<!src=[\"'])(?:file://)?"
    rf"(?:/home/(?P<linux>\w[\w.-]{{0,63}})/{_FOLDERS}(?![\w-])"
    r"|/Users/(?P<mac>\w[\w.-]{0,63})/[\w.]"
    r"|[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)(?P<windows>\w[\w.-]{0,63})(?:\\|/))"
)
_ANYBODY: Final = re.compile(
    r"(?i)users?\d*|(?:my|your)?[-_]?(?:user[-_]?)?name|my[-_]?user|you|me|example|some(?:one|body)"
    r"|alice|bob|jane|joe|john|(?:jane|john)?[-_.]?doe|foo|bar|test(?:er)?|public|default|shared|all"
    r"|guest|runner(?:admin)?|vsts|circleci|travis|jenkins|ci|build|ubuntu|debian|centos|fedora"
    r"|ec2-user|azureuser|vagrant|pi|node|app(?:user)?|web|www(?:-data)?|dev(?:eloper)?"
    r"|(?:container)?admin(?:istrator)?|root|git|linuxbrew|jovyan|coder|vscode|codespace|gitpod"
    r"|docker|nonroot|nobody|kaggle|colab"
)
"""Names that stand for whoever reads, and the users of images and build machines."""


def holds_host_path(line: str) -> bool:
    """Whether a line holds a path of somebody's machine."""
    return any(
        not _ANYBODY.fullmatch(match["linux"] or match["mac"] or match["windows"])
        for match in _PATHS.finditer(line)
    )
