"""How a command ends: exit codes, and the one line that says what went wrong."""

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
    Interrupted,
    InvalidInput,
    LeaseLost,
    NotFound,
    ReadOnly,
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
    AmbiguousId: CONFLICT,
    Conflict: CONFLICT,
    Busy: CONFLICT,
    LeaseLost: CONFLICT,
    ReadOnly: CONFLICT,
    Interrupted: CONFLICT,
    EngineError: ENGINE,
    StoreError: STORE,
}
"""The exit code of an error is that of its nearest class here."""

USAGE = "usage"
DECLINED = "declined"
FILE_ERROR = "file_error"
OWN_CODES = (USAGE, DECLINED, FILE_ERROR)
"""Codes that only the command line gives."""


class Declined(click.ClickException):
    """The user was asked and said no."""


def exit_code(error: type[HithertoError]) -> int:
    """The exit code for errors of this class."""
    return next(EXIT_CODES[known] for known in error.__mro__ if known in EXIT_CODES)


def report(error: BaseException) -> int:
    """Say on stderr what went wrong, with its stable code; returns the exit code. A fault of our own is raised."""
    match error:
        case HithertoError():
            return _tell(error.message, error.code, exit_code(type(error)))
        case click.Abort() | KeyboardInterrupt():
            silence(sys.stdout)  # if nobody reads, what is left in its buffer would keep the program
            return INTERRUPTED
        case click.UsageError():
            if error.ctx is not None:
                click.echo(error.ctx.get_usage(), err=True)
            return _tell(error.format_message(), USAGE, INVALID)
        case click.ClickException():
            code = DECLINED if isinstance(error, Declined) else FILE_ERROR
            return _tell(error.format_message(), code, FAILED)
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return _tell(f"{where}{error.strerror or error}", FILE_ERROR, FAILED)
    raise error


def silence(stream: IO[str]) -> None:
    """Send what is left in a stream's buffer nowhere: its reader is gone."""
    with suppress(OSError):  # a stream that is no file keeps nobody
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _tell(message: str, code: str, status: int) -> int:
    sys.stdout.flush()
    click.echo(f"hitherto: {clean(message)} [{code}]", err=True)
    return status
