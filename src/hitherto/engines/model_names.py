"""What a user's name for a model means. Pure.

`provider:name` names any model of any provider that pydantic-ai knows: `anthropic:claude-sonnet-5`,
`google:gemini-2.5-pro`, `openrouter:qwen/qwen3-coder`, `ollama:qwen3:8b`. Names that only one provider gives are
understood without it. `openai:` speaks OpenAI's Responses API, which compatible servers rarely do: when
OPENAI_BASE_URL leads elsewhere it means `openai-chat:`, the chat completions that they all speak.
`openai-responses:` and `openai-chat:` mean exactly what they say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from hitherto.errors import ModelMissing, SignInRequired

PLAIN_NAMES = (
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gpt-|chatgpt-|codex-|o\d+(-|$)"), "openai"),
    (re.compile(r"gemini-"), "google"),
)
"""How names that need no provider begin."""

UNSET = "no model is set: name one with --model or HITHERTO_MODEL, for example anthropic:claude-sonnet-5"


def full_name(given: str | None, environ: Mapping[str, str]) -> str:
    """The model as `provider:name`. Raises `ModelMissing`, saying what to set."""
    name = (given or "").strip()
    if not name:
        raise SignInRequired(UNSET)
    provider, colon, model = name.partition(":")
    if not colon:
        provider, model = _provider_of(name), name
    if not (provider and model):
        raise ModelMissing(
            f"{name!r} is not a model name: write it as provider:name, for example openai:gpt-5"
        )
    if provider == "openai" and _leads_elsewhere(environ.get("OPENAI_BASE_URL", "")):
        provider = "openai-chat"
    return f"{provider}:{model}"


def _provider_of(name: str) -> str:
    for beginning, provider in PLAIN_NAMES:
        if beginning.match(name):
            return provider
    raise ModelMissing(
        f"unknown provider for the model {name!r}: write it as provider:name, for example ollama:{name}"
    )


def _leads_elsewhere(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return bool(base_url) and host != "openai.com" and not host.endswith(".openai.com")
