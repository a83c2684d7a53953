"""Memory: facts that outlive the context they were drawn from."""
