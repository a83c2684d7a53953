"""In the place of the quicker event loop, whose connections the interpreter does not see: a watched process has none."""

raise ImportError("a watched process runs on the loop of the standard library")
