"""The page at `/`: what this is, and how to use it. It holds nothing of anybody's, and runs nothing."""

from __future__ import annotations

import base64
import hashlib

from recollect import __version__

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 4rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.5 ui-monospace, monospace; background: #8882; border-radius: 4px; padding: .1em .3em; }
pre { padding: .8em 1em; overflow-x: auto; }
:root { color-scheme: light dark; }
"""
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
).encode()
KIND = b"text/html; charset=utf-8"
PAGE = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Recollect</title>
<style>{STYLE}</style>
<h1>Recollect {__version__}</h1>
<p>This server keeps agent sessions. Programs talk to it:</p>
<ul>
<li><code>POST /rpc</code>: JSON-RPC 2.0, one request per body;
<li><code>/ws</code>: the same over a WebSocket, with events;
<li><code>/acp</code>: the Agent Client Protocol over a WebSocket, for editors;
<li><code>/health</code>, <code>/ready</code>, <code>/metrics</code>: for whoever watches it.
</ul>
<p>Every request carries a token. The server has told at its start where it keeps yours;
<code>recollect token create --owner NAME</code> makes more.</p>
<pre>curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{{"jsonrpc":"2.0","id":1,"method":"session.list"}}' ADDRESS/rpc</pre>
<p><code>rpc.discover</code> tells all methods.</p>
</html>
""".encode()
