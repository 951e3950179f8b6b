"""All sources of findings by the name that callers use."""

from collections.abc import Mapping
from typing import Final

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
from cleats.toolsets.code.triage.sources.drafts import FindingSource

SOURCES_BY_NAME: Final[Mapping[str, FindingSource]] = {
    "dependabot": dependabot.DEPENDABOT_SOURCE,
    "aws_inspector": aws_inspector.AWS_INSPECTOR_SOURCE,
    "sarif": sarif.SARIF_SOURCE,
    "osv": osv.OSV_SOURCE,
    "pip_audit": pip_audit.PIP_AUDIT_SOURCE,
    "npm_audit": npm_audit.NPM_AUDIT_SOURCE,
    "cyclonedx": cyclonedx.CYCLONEDX_SOURCE,
    "generic": generic.GENERIC_SOURCE,
    "manual": generic.MANUAL_SOURCE,
}
