"""JSON-RPC 2.0 without a transport: frames, errors, and a peer that serves and asks over anything that carries bytes."""
