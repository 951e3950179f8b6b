"""Every artifact that has a schema must match it."""

from collections.abc import Iterator

from cleats.toolsets.launch.gates.model import Gate, GateMessage, LaunchSite, make_blocker
from cleats.toolsets.launch.runs import artifacts


def check_schemas(site: LaunchSite) -> Iterator[GateMessage]:
    for name in sorted(site.job.inputs):
        schema = artifacts.find_schema_id(name)
        if not schema:
            continue
        try:
            document = site.job.read_json(name)
        except ValueError:
            yield make_blocker("GATE_SCHEMA_UNREADABLE", f"{name} is not JSON", name)
            continue
        yield f"{name}: {schema}"
        for fault in artifacts.find_faults(schema, document):
            message = f"{name} does not fit its schema: {fault['path'] or '/'}: {fault['message']}"
            yield make_blocker("GATE_SCHEMA_INVALID", message, name)


GATE = Gate(name="schema", purpose=__doc__, check=check_schemas, local_seconds=30.0, strict_seconds=60.0)
