"""One prompt, from being said to its result."""

from __future__ import annotations

from collections.abc import Callable

from hitherto.engine import Notice
from hitherto.errors import EngineError, ModelMissing
from hitherto.model import Image, Part, ToolCall
from hitherto.permissions import Choice, Verdict
from hitherto.sdk.messages import SDKMessage, SDKResultMessage
from hitherto.sdk.open import OpenedSession
from hitherto.sdk.options import Options
from hitherto.sdk.permission import make_ask
from hitherto.sdk.turn_messages import TurnReport
from hitherto.service.turns.open_session import OpenSession
from hitherto.updates import Ask, Outcome, Update

Show = Callable[[SDKMessage], None]

CANCELLED = Outcome(stop_reason="cancelled", prompt="")
"""How a prompt ends that was never begun."""
IMAGE_BY_URL = Notice(
    text="The model does not see an image given only by URL: it gets the URL as text.",
    severity="warning",
)


class QueuedPrompt:
    """A prompt on its way, given `at` a time; `show` gets its messages one by one."""

    def __init__(self, parts: tuple[Part, ...], at: float, show: Show) -> None:
        self.at = at
        self._parts, self._show = parts, show
        self._turn_report: TurnReport | None = None
        self._turns: OpenSession | None = None
        self._interrupted = False
        self._raised: Exception | None = None

    def begin(self, opened: OpenedSession, turn_report: TurnReport) -> None:
        """Show what it is run with; later messages may follow."""
        self._turn_report = turn_report
        self._show(opened.init)

    def emit(self, update: Update) -> None:
        """Show an update."""
        if self._turn_report is not None and (message := self._turn_report.message_for(update)) is not None:
            self._show(message)

    def interrupt(self) -> None:
        """End it where it is; if it has not begun, it never does."""
        self._interrupted = True
        if self._turns is not None:
            self._turns.cancel()

    async def run(
        self, opened: OpenedSession, turn_report: TurnReport, options: Options, *, wait: bool
    ) -> SDKResultMessage:
        """Run it, and show the result, too. Raises what the caller's own function raised."""
        try:
            result = turn_report.result(await self._outcome(opened.turns, options, wait))
        except ModelMissing:
            raise
        except EngineError as error:
            result = turn_report.failure(error)
        if self._raised is not None:
            raise self._raised
        self._show(result)
        return result

    async def _outcome(self, turns: OpenSession, options: Options, wait: bool) -> Outcome:
        if self._interrupted:
            return CANCELLED
        self._turns = turns
        if options.engine is None and any(map(_is_address, self._parts)):
            self.emit(IMAGE_BY_URL)
        ask = self._ask_function(turns, options)
        return await turns.prompt(self._parts, choices=options.choices, ask=ask, emit=self.emit, wait=wait)

    def _ask_function(self, turns: OpenSession, options: Options) -> Ask | None:
        """Asks the caller's function; if that raises, the turn ends and the caller gets what it raised."""
        if options.can_use_tool is None:
            return None
        ask = make_ask(turns.session_id, options.can_use_tool, self.interrupt)

        async def ask_or_stop(call: ToolCall) -> Choice | Verdict:
            try:
                return await ask(call)
            except Exception as error:  # noqa: BLE001 - it is the caller's, and comes out of the caller's await
                self._raised = error
                turns.cancel()
                return Verdict(allowed=False, reason="can_use_tool raised an exception")

        return ask_or_stop


def _is_address(part: Part) -> bool:
    return isinstance(part, Image) and part.data is None
