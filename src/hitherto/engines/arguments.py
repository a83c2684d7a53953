"""What a model gives to a tool, as far as it is JSON that every store keeps and every provider takes back. Pure."""

from __future__ import annotations

import json
import math
import reprlib
from typing import Any, NoReturn

DEEPEST = 50
"""How deep the input of a tool may be nested. No tool needs more, and some libraries give up not far beyond."""


def parsed(args: str | dict[str, Any] | None) -> Any:
    """The arguments. What is no proper JSON, or nested too deep, stays text, so that the tool's answer can say so."""
    if not isinstance(args, str):
        return (args or {}) if is_proper(args) else reprlib.repr(args)
    try:
        values = json.loads(args, parse_constant=_refuse) if args.strip() else {}
    except (ValueError, RecursionError):
        return args
    return values if is_proper(values) else args


def is_proper(value: Any, depth: int = 0) -> bool:
    """Whether nothing in it is too deep, or a number that is none: 1e999 is read as infinity."""
    if isinstance(value, float):
        return math.isfinite(value)
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth < DEEPEST and all(is_proper(each, depth + 1) for each in inner)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
