"""The protocol surfaces: framing, JSON-RPC, stdio, MCP, rpc, legacy and HTTP."""
