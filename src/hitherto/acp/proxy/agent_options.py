"""Mode, options and usage of the agent's session: what it reported last, and what has to be set again. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from hitherto.acp.proxy.agent_link import AgentLink
from hitherto.acp.proxy.frames import Members, join_members, members_of, raw_json, text_of, value_of
from hitherto.model import Json

MODE, OPTIONS, USAGE = "current_mode_update", "config_option_update", "usage_update"


def with_states(link: AgentLink, states: Mapping[str, Json]) -> AgentLink:
    """The link, with what the agent last reported of its session."""
    mode = states.get(MODE, {}).get("currentModeId")
    options = states.get(OPTIONS, {}).get("configOptions")
    usage = states.get(USAGE)
    if isinstance(mode, str):
        link = replace(link, mode=mode)
    if isinstance(options, list):
        link = replace(link, options=dict(_values(options)))
    if usage is not None:
        link = replace(link, usage={name: usage[name] for name in usage if name != "sessionUpdate"})
    return link


def chosen_states(method: str, params: Members, result: Members) -> dict[str, Json]:
    """What a mode or an option that was set leads to, as the agent's update would report it."""
    if method == "session/set_mode":
        return {MODE: {"currentModeId": text_of(params, "modeId")}}
    options = value_of(result.get("configOptions"))
    return {OPTIONS: {"configOptions": options}} if isinstance(options, list) else {}


def options_to_set(result: Members, wanted: Mapping[str, str | bool]) -> Iterator[Members]:
    """The parameters that set each option that is not as it was, and that still has that value."""
    for option in _objects(value_of(result.get("configOptions"))):
        value = wanted.get(str(option.get("id")))
        if value is None or value == option.get("currentValue"):
            continue
        if isinstance(value, bool):
            yield {"configId": raw_json(option["id"]), "type": raw_json("boolean"), "value": raw_json(value)}
        elif value in _choices(option):
            yield {"configId": raw_json(option["id"]), "value": raw_json(value)}


def mode_to_set(result: Members, mode: str) -> bool:
    """Whether the agent's session is in another mode and could be in this one."""
    modes = value_of(result.get("modes"))
    if not isinstance(modes, dict) or modes.get("currentModeId") == mode:
        return False
    return any(each.get("id") == mode for each in _objects(modes.get("availableModes")))


def with_mode(result: Members, mode: str) -> Members:
    """The answer of a session that is in this mode, if it has modes."""
    modes = members_of(result["modes"]) if "modes" in result else None
    if not modes or "currentModeId" not in modes:
        return result
    return {**result, "modes": Raw(join_members({**modes, "currentModeId": raw_json(mode)}))}


def with_options(result: Members, states: Mapping[str, Json]) -> Members:
    """The answer of a session that has the options that were last reported."""
    options = states.get(OPTIONS, {}).get("configOptions")
    return {**result, "configOptions": raw_json(options)} if isinstance(options, list) else result


def _values(options: list[Any]) -> Iterator[tuple[str, str | bool]]:
    for option in _objects(options):
        match option:
            case {"id": str(name), "currentValue": str() | bool() as value}:
                yield name, value


def _choices(option: Json) -> Iterator[Any]:
    """The values of an option, also those in groups."""
    for choice in _objects(option.get("options")):
        yield choice.get("value")
        yield from (each.get("value") for each in _objects(choice.get("options")))


def _objects(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
