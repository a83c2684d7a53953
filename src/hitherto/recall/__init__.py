"""History for agents: what was said and decided in earlier sessions, looked up by a running agent over MCP."""
