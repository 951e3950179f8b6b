"""Conformance tests: the official MCP suite and the MCP Inspector against our kernel."""
