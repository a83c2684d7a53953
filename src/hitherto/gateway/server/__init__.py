"""The running server: its state, its sockets, its schedule."""
