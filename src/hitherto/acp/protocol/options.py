"""The options of a session: model, mode, thinking. They are stored with the session. Pure."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from hitherto.acp.protocol.content import parts_of
from hitherto.acp.protocol.params import SystemPrompt
from hitherto.engine import Choices
from hitherto.errors import InvalidInput
from hitherto.model import OWN, Json, Session, Text
from hitherto.permissions import MODES, Mode

META_KEY = f"{OWN}choices"
"""The key in a session's meta under which they are stored."""
TRACE = {"traceparent": 128, "tracestate": 512, "baggage": 8192}
"""Trace fields that are passed on, and their maximum length. Others are ignored: a prompt must not fail because of them."""
DEFAULT_MODEL = "default"
PROMPT_MODES = ("append", "override")
SYSTEM_PROMPT_CHARS = 100_000

MODE_NAMES: dict[Mode, tuple[str, str]] = {
    "default": ("Ask", "Asks before it changes anything or runs a command."),
    "acceptEdits": ("Accept edits", "Changes files without asking; asks before it runs a command."),
    "plan": ("Plan", "Reads and plans; changes nothing."),
    "dontAsk": ("Don't ask", "Never asks; refuses what would need permission."),
    "bypassPermissions": ("Bypass permissions", "Does everything without asking."),
}
THINKING = {
    "default": "Model default",
    "off": "Off",
    "low": "Low",
    "medium": "Medium",
    "high": "High",
}


OPTIONS: dict[str, tuple[str, str]] = {
    "model": ("Model", "model"),
    "mode": ("Mode", "mode"),
    "thinking": ("Thinking", "thought_level"),
}
"""Each option → its display name and category."""


class AvailableOptions(msgspec.Struct, frozen=True):
    """The options and models that a user can choose."""

    models: tuple[str, ...] = ()
    options: tuple[str, ...] = tuple(OPTIONS)


class ChosenOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The chosen options, and the instructions of the client; None means the engine's default."""

    model: str | None = None
    mode: Mode = "default"
    thinking: str | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None


def chosen_options(session: Session) -> ChosenOptions:
    """The options stored with the session; invalid values count as not set."""
    try:
        return msgspec.convert(session.meta.get(META_KEY, {}), ChosenOptions)
    except msgspec.ValidationError:
        return ChosenOptions()


def options_meta(chosen: ChosenOptions) -> Json:
    """What to merge into the session's meta."""
    return {META_KEY: msgspec.to_builtins(chosen) or None}


def choose(
    chosen: ChosenOptions, option: str, value: str | bool, available_options: AvailableOptions
) -> ChosenOptions:
    """The choices after setting an option."""
    values = {
        name: [each["value"] for each in values]
        for name, values in _values(chosen, available_options).items()
    }
    if option not in values:
        raise InvalidInput(f"unknown option {option!r:.100}; known: {', '.join(values) or 'none'}")
    if value not in values[option]:
        raise InvalidInput(f"{option} must be one of {', '.join(values[option])}, not {value!r:.100}")
    if option == "mode":
        return replace(chosen, mode=value)
    return replace(chosen, **{option: None if value == "default" else value})


def instructed(chosen: ChosenOptions, given: SystemPrompt) -> ChosenOptions:
    """The choices with the instructions of a client. Raises `InvalidInput` if they cannot be used."""
    parts = parts_of(given.content)
    if given.mode not in PROMPT_MODES:
        raise InvalidInput(
            f"unknown mode {given.mode!r:.100} of systemPrompt: use {' or '.join(PROMPT_MODES)}"
        )
    texts = [part.text for part in parts if isinstance(part, Text)]
    if len(texts) < len(parts) or not (text := "\n\n".join(texts).strip()):
        raise InvalidInput("systemPrompt must be text")
    if len(text) > SYSTEM_PROMPT_CHARS:
        raise InvalidInput(
            f"systemPrompt has {len(text)} characters; at most {SYSTEM_PROMPT_CHARS} are allowed"
        )
    replaced = given.mode == "override"
    return replace(
        chosen,
        system_prompt=text if replaced else None,
        append_system_prompt=None if replaced else text,
    )


def modes(chosen: ChosenOptions, available_options: AvailableOptions) -> Json | None:
    """The mode, for clients that support modes but not options; None if it cannot be chosen."""
    if "mode" not in available_options.options:
        return None
    return {
        "currentModeId": chosen.mode,
        "availableModes": [
            {"id": mode, "name": name, "description": description}
            for mode, (name, description) in MODE_NAMES.items()
        ],
    }


def options(chosen: ChosenOptions, available_options: AvailableOptions) -> list[Json]:
    """All options, with what is chosen."""
    current = {
        "model": chosen.model or DEFAULT_MODEL,
        "mode": chosen.mode,
        "thinking": chosen.thinking or "default",
    }
    return [
        {
            "id": option,
            "name": OPTIONS[option][0],
            "category": OPTIONS[option][1],
            "type": "select",
            "currentValue": current[option],
            "options": values,
        }
        for option, values in _values(chosen, available_options).items()
    ]


def choices(chosen: ChosenOptions, meta: Json) -> Choices:
    """The choices of a turn, with the trace of the request."""
    given = {name: meta.get(name) for name in TRACE}
    trace = {name: text for name, text in given.items() if isinstance(text, str) and len(text) <= TRACE[name]}
    return Choices(
        model=chosen.model,
        mode=chosen.mode,
        thinking=chosen.thinking,
        system_prompt=chosen.system_prompt,
        append_system_prompt=chosen.append_system_prompt,
        trace=trace,
    )


def _values(chosen: ChosenOptions, available_options: AvailableOptions) -> dict[str, list[Json]]:
    """The possible values of each available option."""
    models = available_options.models
    default, *others = models or (DEFAULT_MODEL,)
    known = dict.fromkeys([*others, *([chosen.model] if chosen.model else [])])
    values = {
        "model": [
            {"value": DEFAULT_MODEL, "name": f"Default ({default})" if models else "Default"},
            *({"value": name, "name": name} for name in known if name != DEFAULT_MODEL),
        ],
        "mode": [
            {"value": mode, "name": MODE_NAMES[mode][0], "description": MODE_NAMES[mode][1]} for mode in MODES
        ],
        "thinking": [{"value": value, "name": name} for value, name in THINKING.items()],
    }
    return {name: values[name] for name in available_options.options}
