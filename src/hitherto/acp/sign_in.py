"""Signing in to a model provider: a model and a key, asked for in a terminal and kept in a file that only its owner may read.

The file stands in the data folder. A key in the environment takes precedence over it and is never stored.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from getpass import getpass
from pathlib import Path

import msgspec

from hitherto.errors import InvalidInput

FILE = "sign-in.json"
OTHERS = 0o077
PROVIDERS: dict[str, tuple[str, str]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5"),
    "openai": ("OPENAI_API_KEY", "openai:gpt-5"),
    "google": ("GOOGLE_API_KEY", "google:gemini-2.5-pro"),
    "openrouter": ("OPENROUTER_API_KEY", "openrouter:qwen/qwen3-coder"),
}
"""Each provider → the variable of its key, and the model that is suggested."""


class SignIn(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept: the model that answers, and the key under the variable of its provider."""

    model: str
    variable: str
    key: str


def read_sign_in(folder: Path) -> SignIn | None:
    """What was kept; None if nothing was. Raises `InvalidInput` if others may read it, or it is damaged."""
    path = folder / FILE
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & OTHERS:
                raise InvalidInput(f"others can read your key: run chmod 600 {path}")
            return msgspec.json.decode(file.read(), type=SignIn)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidInput(f"cannot read {path}: sign in again with `hitherto acp --sign-in`") from error


def keep_sign_in(folder: Path, kept: SignIn) -> None:
    """Keep this in place of what was kept before; the file is whole at every moment."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path, fresh = folder / FILE, folder / f"{FILE}.new"
    with suppress(FileNotFoundError):
        fresh.unlink()
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(kept))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def forget_sign_in(folder: Path, environ: MutableMapping[str, str] = os.environ) -> None:
    """Sign out: the file is removed, and its key is no longer used by this process."""
    with suppress(InvalidInput):
        kept = read_sign_in(folder)
        if kept is not None and environ.get(kept.variable) == kept.key:
            del environ[kept.variable]
    with suppress(FileNotFoundError):
        (folder / FILE).unlink()


def use_sign_in(folder: Path, environ: MutableMapping[str, str] = os.environ) -> SignIn | None:
    """Have this process use what was kept; a key in the environment stays. Returns what was kept."""
    kept = read_sign_in(folder)
    if kept is not None:
        environ.setdefault(kept.variable, kept.key)
    return kept


def ask_sign_in(folder: Path) -> None:
    """Ask for a provider, a model and a key in the terminal, and keep them. Ends the program with an error if there are none."""
    sys.stdout.write(f"Sign in to a model provider. Your key is kept in {folder / FILE}, for you alone.\n")
    try:
        provider = input(f"Provider ({', '.join(PROVIDERS)}): ").strip().lower()
        if provider not in PROVIDERS:
            raise SystemExit(
                f"hitherto: unknown provider {provider!r:.40}: use one of {', '.join(PROVIDERS)}"
            )
        variable, suggested = PROVIDERS[provider]
        model = input(f"Model [{suggested}]: ").strip() or suggested
        key = getpass("Key (it is not shown): ").strip()
    except (EOFError, KeyboardInterrupt):
        raise SystemExit("hitherto: nothing was kept") from None
    if not key or not key.isascii() or not key.isprintable():
        raise SystemExit("hitherto: that is not a key; nothing was kept")
    keep_sign_in(folder, SignIn(model=model, variable=variable, key=key))
    sys.stdout.write(f"Signed in: {model} answers, unless --model or HITHERTO_MODEL names another.\n")
