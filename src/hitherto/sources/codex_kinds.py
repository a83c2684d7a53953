"""Kinds of records in Codex's rollouts that need no more than to be known. Pure."""

from __future__ import annotations


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


USER_SHELL = frozenset({"user_shell", "userShell"})

QUIET = _words(
    "world_state token_usage_record security_risk_score retained_context realtime_item bookkeeping",
    "inter_agent_communication_metadata",
)
"""Lines that are no part of the conversation."""
QUIET_RESPONSES = _words(
    "compaction context_compaction compaction_summary compaction_trigger ghost_snapshot additional_tools other",
)
SHOWN_TOO = frozenset({"message", "reasoning", "web_search_call", "image_generation_call"})
"""Items of the model's that newer rollouts tell as what was shown too."""
QUIET_EVENTS = _words(
    "user_message agent_message agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break",
    "context_compacted entered_review_mode exited_review_mode web_search_end image_generation_end view_image_tool_call",
    "thread_goal_updated thread_settings_applied plan_update warning guardian_warning guardian_assessment undo_completed",
    "turn_diff background_event session_configured injected_message model_reroute model_verification shutdown_complete",
    "dynamic_tool_call_request collab_agent_spawn_end collab_agent_interaction_end collab_waiting_end collab_close_end",
    "collab_resume_end hook_started hook_completed item_started turn_moderation_metadata thread_queue_changed",
)
"""Events that say nothing which another record does not say, or nothing of the conversation."""
QUIET_ITEMS = frozenset({"ContextCompaction", "Sleep", "EnteredReviewMode"})

INJECTED = (
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<skill>",
    "<turn_aborted>",
    "<goal_context>",
    "<additional_context>",
    "<internal_context",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<model_switch>",
)
"""How messages begin that the program gave to the model in the user's name."""
NOTES = ("<subagent_notification>", "<hook_prompt")
"""How those begin that tell of something that has happened."""
ITEMS_OF_BOTH = frozenset(
    {"UserMessage", "AgentMessage", "Reasoning", "HookPrompt", "WebSearch", "ImageGeneration"}
)
"""What older rollouts tell as items of the model's."""
