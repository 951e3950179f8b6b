"""Every artifact that has a schema fits it."""

from collections.abc import Iterator

from cleats.toolsets.launch import artifacts
from cleats.toolsets.launch.gates.model import Gate, Said, blocker
from cleats.toolsets.launch.gates.site import Site


def check(site: Site) -> Iterator[Said]:
    for name in sorted(site.job.inputs):
        schema = artifacts.schema_of(name)
        if not schema:
            continue
        try:
            document = site.job.json(name)
        except ValueError:
            yield blocker("GATE_SCHEMA_UNREADABLE", f"{name} is not JSON", name)
            continue
        yield f"{name}: {schema}"
        for fault in artifacts.faults(schema, document):
            message = f"{name} does not fit its schema: {fault['path'] or '/'}: {fault['message']}"
            yield blocker("GATE_SCHEMA_INVALID", message, name)


GATE = Gate(name="schema", purpose=__doc__, check=check, local=30.0, strict=60.0)
