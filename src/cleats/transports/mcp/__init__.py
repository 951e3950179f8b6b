"""MCP, on the official SDK. The only package that imports it."""
