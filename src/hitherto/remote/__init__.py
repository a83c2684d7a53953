"""Sessions that a server keeps: the service's own calls, each one request over a WebSocket to the gateway."""
