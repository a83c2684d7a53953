"""Between an editor and another ACP agent: everything is recorded as it passes, and the editor gets what the agent lacks.

    hitherto.acp.proxy.start.run(["opencode", "acp"], store=None)

An update is relayed as the bytes it came as, but for the id of its session; only the agent's session ids and the ids of
requests are ever translated. What this program keeps of a session is in its store, under an id of its own; which
session of the agent stands behind it is kept in the session's metadata.
"""
