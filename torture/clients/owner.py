"""An owner of sessions on a server: asks over HTTP and on a socket, and is told there what happens."""

from __future__ import annotations

import http.client
import json
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from websockets.sync.client import ClientConnection, connect

from tests.gateway.servers import Json, Server
from tests.support.waits import LIMIT

RECENT = 40


@dataclass
class Owner:
    """One of them: two connections, and what is known to be theirs."""

    name: str
    connection: http.client.HTTPConnection
    headers: dict[str, str]
    socket: ClientConnection
    subscription: str = ""
    """Of all their sessions, for as long as the socket is open."""
    ids: set[str] = field(default_factory=set)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT))
    told: list[str] = field(default_factory=list)
    """Events that came before the answer to something."""

    def ask(self, method: str, params: Json) -> str:
        """The answer over HTTP, as it came."""
        self.connection.request("POST", "/rpc", _request(method, params).encode(), self.headers)
        answer = self.connection.getresponse().read().decode()
        # A server ends a line that was idle for some seconds: the next request opens a new one.
        self.connection.close()
        return answer

    def say(self, method: str, params: Json) -> str:
        """The answer on the socket, as it came."""
        self.socket.send(_request(method, params))
        while True:
            text = str(self.socket.recv(LIMIT))
            if "method" not in json.loads(text):
                return text
            self.told.append(text)

    def events(self) -> list[str]:
        """What has been told since the last time."""
        told, self.told = self.told, []
        while True:
            try:
                told.append(str(self.socket.recv(timeout=0)))
            except TimeoutError:
                return told

    def subscribe(self) -> None:
        """Be told what happens to all their sessions from now on."""
        self.subscription = json.loads(self.say("session.subscribe", {}))["result"]["subscription_id"]
        self.ids.add(self.subscription)

    @property
    def known(self) -> Sequence[str]:
        """What others may name: something that was told lately, or that subscription."""
        return [*self.recent, self.subscription]


@contextmanager
def connected(server: Server, name: str) -> Iterator[Owner]:
    """The holder of this token."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
    headers = {"Content-Type": "application/json", **server.bearer(name)}
    with connect(
        f"ws://{server.host}/ws", additional_headers=server.bearer(name), max_size=None, proxy=None
    ) as socket:
        yield Owner(name, connection, headers, socket)
    connection.close()


def _request(method: str, params: Json) -> str:
    """All have the same id: one is answered before the next is asked."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
