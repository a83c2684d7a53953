"""HTTP and WebSocket below the methods: limits, origins, responses, metrics."""
