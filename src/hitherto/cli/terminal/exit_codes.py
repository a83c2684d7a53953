"""Exit codes, and the one line on stderr that reports an error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO

import click

from hitherto.cli.terminal.output import clean
from hitherto.errors import (
    AmbiguousId,
    Busy,
    Conflict,
    EngineError,
    HithertoError,
    InboxFull,
    IndexBehind,
    Interrupted,
    InvalidInput,
    LeaseLost,
    NotFound,
    OutOfReach,
    ReadOnly,
    SearchTooBroad,
    StoreError,
)

OK = 0
FAILED = 1
INVALID = 2
MISSING = 3
CONFLICT = 4
STORE = 5
ENGINE = 6
INTERRUPTED = 130

EXIT_CODES: dict[type[HithertoError], int] = {
    HithertoError: FAILED,
    InvalidInput: INVALID,
    NotFound: MISSING,
    OutOfReach: MISSING,
    AmbiguousId: CONFLICT,
    SearchTooBroad: INVALID,
    IndexBehind: CONFLICT,
    Conflict: CONFLICT,
    Busy: CONFLICT,
    InboxFull: CONFLICT,
    LeaseLost: CONFLICT,
    ReadOnly: CONFLICT,
    Interrupted: CONFLICT,
    EngineError: ENGINE,
    StoreError: STORE,
}
"""An error gets the exit code of its nearest class in this table."""

USAGE = "usage"
DECLINED = "declined"
FILE_ERROR = "file_error"
OWN_CODES = (USAGE, DECLINED, FILE_ERROR)
"""Error codes of the command line itself."""


class Declined(click.ClickException):
    """The user answered a confirmation with no."""


def exit_code(error: type[HithertoError]) -> int:
    """The exit code for errors of this class."""
    return next(EXIT_CODES[known] for known in error.__mro__ if known in EXIT_CODES)


def report(error: BaseException) -> int:
    """Print the error with its stable code to stderr and return the exit code. Unexpected errors are raised again."""
    match error:
        case HithertoError():
            return _print_error(error.message, error.code, exit_code(type(error)))
        case click.Abort() | KeyboardInterrupt():
            silence(sys.stdout)  # a full pipe without a reader would block the program at exit
            return INTERRUPTED
        case click.UsageError():
            if error.ctx is not None:
                click.echo(error.ctx.get_usage(), err=True)
            return _print_error(error.format_message(), USAGE, INVALID)
        case click.ClickException():
            code = DECLINED if isinstance(error, Declined) else FILE_ERROR
            return _print_error(error.format_message(), code, FAILED)
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return _print_error(f"{where}{error.strerror or error}", FILE_ERROR, FAILED)
    raise error


def silence(stream: IO[str]) -> None:
    """Redirect a stream to /dev/null, so that its buffer is discarded: its reader has left."""
    with suppress(OSError):  # a stream without a file descriptor cannot block
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _print_error(message: str, code: str, status: int) -> int:
    sys.stdout.flush()
    click.echo(f"hitherto: {clean(message)} [{code}]", err=True)
    return status
