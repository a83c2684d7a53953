"""A name becomes a model that can be asked. Importing this takes seconds: only a running turn does, in a thread."""

from __future__ import annotations

import re

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model

from hitherto.engines.model.errors import cause_of, without_keys
from hitherto.errors import ModelMissing, SignInRequired

_VARIABLE = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")
_PACKAGE = re.compile(r"install the `([^`]+)` package")
_KEY = re.compile(r"[!-~]*")
_SUGGESTION = re.compile(r"Did you mean '([^']+)'")


def connect(name: str) -> Model:
    """The model of this full name, with keys and addresses from its provider's usual variables.

    Raises `ModelMissing` with the variable to set, the package to install, or the name that might be meant.
    """
    try:
        model = infer_model(name)
    except ImportError as error:
        raise ModelMissing(_missing_package(name, str(error))) from error
    except UserError as error:
        wanting = SignInRequired if _VARIABLE.search(error.message) else ModelMissing
        raise wanting(_missing_setting(name, error.message)) from error
    except Exception as error:  # each provider's own library has its own ways to say that it is not set up
        why = cause_of(error) or without_keys(str(error))
        raise ModelMissing(f"cannot use the model {name!r}: {why}") from error
    if not _has_proper_key(model):
        raise ModelMissing(
            f"the key for {name!r} contains invalid characters, such as a line end: set it again"
        )
    return model


def _has_proper_key(model: Model) -> bool:
    """Whether the key, if there is one that we can see, can stand in a header."""
    key = getattr(getattr(model, "client", None), "api_key", None)
    return not isinstance(key, str) or _KEY.fullmatch(key) is not None


def _missing_package(name: str, message: str) -> str:
    package = _PACKAGE.search(message)
    return f"the model {name!r} needs the package {package[1] if package else message}: install it"


def _missing_setting(name: str, message: str) -> str:
    if variables := list(dict.fromkeys(_VARIABLE.findall(message))):
        return f"the model {name!r} needs a setting: set the environment variable {' or '.join(variables)}"
    if message.startswith("Unknown model"):
        meant = _SUGGESTION.search(message)
        hint = f"did you mean {meant[1]}?" if meant else "see the list of models of pydantic-ai"
        return f"unknown provider {name.partition(':')[0]!r} in the model name {name!r}: {hint}"
    return f"cannot use the model {name!r}: {message}"
