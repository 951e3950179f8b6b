"""The version numbers we publish, and the only place they are written."""

import re
from typing import Final

RELEASE_VERSION_PATTERN: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")

SCHEMA_VERSION: Final = "3.1.0"
"""The version of the contract: tools, schemas, envelope, error codes. `contract.compat` decides when it must rise."""

TOOLING_VERSION: Final = "0.3.0"
"""The version of this build. For debugging; never a compatibility gate."""

PROTOCOL_VERSION: Final = "2025-11-25"
"""The MCP revision every handshake client is answered with unless the setting says negotiate."""

LEGACY_PROTOCOL_VERSION: Final = "2024-11-05"
"""The version that the legacy wire answers: the last revision that its clients were written for."""
