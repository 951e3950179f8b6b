"""Every source that findings can come from, by the name that callers give."""

from collections.abc import Mapping
from typing import Final

from cleats.toolsets.code.triage.drafts import Source
from cleats.toolsets.code.triage.sources import (
    aws_inspector,
    cyclonedx,
    dependabot,
    generic,
    npm_audit,
    osv,
    pip_audit,
    sarif,
)

SOURCES: Final[Mapping[str, Source]] = {
    "dependabot": dependabot.SOURCE,
    "aws_inspector": aws_inspector.SOURCE,
    "sarif": sarif.SOURCE,
    "osv": osv.SOURCE,
    "pip_audit": pip_audit.SOURCE,
    "npm_audit": npm_audit.SOURCE,
    "cyclonedx": cyclonedx.SOURCE,
    "generic": generic.GENERIC,
    "manual": generic.MANUAL,
}
