"""Going on as an agent: this process becomes its command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NoReturn

from hitherto.errors import InvalidCwd, InvalidInput


def become(words: Sequence[str], folder: str | None) -> NoReturn:
    """Be this command, in this folder. Raises what is wrong if it cannot be started."""
    if folder is not None:
        try:
            os.chdir(folder)
        except OSError:
            told = f"the folder {folder!r} cannot be entered; if it is now elsewhere, say so with `hitherto move`"
            raise InvalidCwd(told) from None
    try:
        os.execvp(words[0], list(words))  # noqa: S606 - the agent's own command, without a shell
    except OSError as error:
        raise InvalidInput(f"{words[0]!r} cannot be started: {error.strerror}; is it installed?") from None
