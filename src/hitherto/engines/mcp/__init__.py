"""MCP servers and the tools they offer. The MCP SDK is imported when the first server starts, in a thread."""

from hitherto.engines.mcp.servers import McpServers

__all__ = ["McpServers"]
