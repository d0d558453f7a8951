"""The shape of a plan, as models and clients are told it. See ``docs/design/gasl.md#the-plan-object``. Imports pydantic: import it late."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["MAX_COMMANDS", "PlanModel"]

MAX_COMMANDS = 10_000


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CommandModel(_Strict):
    """A command and why it is there."""

    command: str = Field(description="A single GASL command.", min_length=1)
    why: str = Field(default="", description="A brief, one-line rationale for this command.")


class ConfigModel(_Strict):
    """When a plan stops."""

    stop_on_error: bool = Field(
        default=True, description="Stop after a command that ends with error, binding_failure or schema_mismatch."
    )
    continue_on_empty: bool = Field(default=False, description="Go on after a command that finds nothing.")


class PlanModel(_Strict):
    """A plan: GASL commands, executed in order as one script."""

    model_config = ConfigDict(title="Plan")

    plan_id: str = Field(description="UUID for tracking.", min_length=1, max_length=200)
    why: str = Field(description="A brief, one-line rationale for this plan.", min_length=1)
    commands: Annotated[
        list[str | CommandModel],
        Field(
            description="GASL commands, in order. A TRY block may span several strings.",
            min_length=1,
            max_length=MAX_COMMANDS,
        ),
    ]
    config: ConfigModel = Field(default=ConfigModel(), description="When the plan stops.")
