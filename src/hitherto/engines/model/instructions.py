"""What a model is asked to be. Nothing heavy is imported."""

from __future__ import annotations

from hitherto.engine import Choices


def system_prompt(choices: Choices, roots: tuple[str, ...]) -> str:
    """The caller's system prompt, or the default one with the session's folders; and what the caller appends."""
    base = choices.system_prompt if choices.system_prompt is not None else _default(roots)
    return "\n\n".join(text for text in (base, choices.append_system_prompt) if text)


def _default(roots: tuple[str, ...]) -> str:
    if not roots:
        return DEFAULT
    lines = [f"Working directory: {roots[0]}", *(f"Also open to you: {root}" for root in roots[1:])]
    return "\n".join((DEFAULT, "", *lines))
