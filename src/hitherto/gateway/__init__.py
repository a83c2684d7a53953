"""The gateway: `session.*` over JSON-RPC, for services, chat channels and the page."""
