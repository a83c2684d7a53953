"""`update_plan`: what the model is about to do, for people to see."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hitherto.engines.tool_calls import Ran, Show, Tool
from hitherto.engines.tools.definition import Input, offered, said
from hitherto.engines.tools.limits import PLAN_STEPS, STEP_CHARS
from hitherto.model import Plan


class Step(Input, frozen=True):
    """A step of a plan, with the words of the Agent Client Protocol."""

    content: Annotated[str, Meta(min_length=1, max_length=STEP_CHARS)]
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class UpdatePlan(Input, frozen=True):
    """Show the user your plan for work of several steps, and keep it up to date: give all steps each time."""

    steps: Annotated[tuple[Step, ...], Meta(max_length=PLAN_STEPS)]


def update_plan() -> Tool:
    """Touches nothing; the plan stands beside the result."""

    async def run(asked: UpdatePlan, _: Show) -> Ran:
        plan = Plan(steps=tuple(msgspec.to_builtins(step) for step in asked.steps))
        return said("The plan is shown.", extra=(plan,))

    return offered(UpdatePlan, run, name="update_plan", kind="think", title=lambda _: "Update the plan")
