"""Every artifact that has a schema must match it."""

from collections.abc import Iterator

from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.runs import artifacts

INVALID_ARTIFACT = IssueKind(
    "GATE_SCHEMA_INVALID", "blocker", "Start the run again: an artifact was damaged, or a worker is wrong."
)
UNREADABLE_ARTIFACT = IssueKind("GATE_SCHEMA_UNREADABLE", "blocker", "Start the run again: an artifact was damaged.")


def check_schemas(site: LaunchSite) -> Iterator[GateMessage]:
    for name in sorted(site.job.inputs):
        schema = artifacts.find_schema_id(name)
        if not schema:
            continue
        try:
            document = site.job.read_json(name)
        except ValueError:
            yield UNREADABLE_ARTIFACT.draft(f"{name} is not JSON", name)
            continue
        yield f"{name}: {schema}"
        for fault in artifacts.find_faults(schema, document):
            yield INVALID_ARTIFACT.draft(artifacts.describe_misfit(name, fault), name)


GATE = Gate("schema", __doc__, check_schemas, local_seconds=30.0, strict_seconds=60.0)
