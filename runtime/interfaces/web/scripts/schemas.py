"""What ``/scripts/run`` takes and gives, for checking requests and for the OpenAPI document."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["RunScriptRequest", "RunScriptResponse"]

LONGEST = 50_000
"""Characters of a script."""

_SCRIPT = """\
(mood)=EACH({(input)}["reviews"], LLM("Is this review glad or sad? {(item)}", type="glad" | "sad"))
(final)=EXPR("len([m for m in mood if m == 'glad'])", mood={(mood)})
"""
_EXAMPLE: dict[str, Any] = {"script": _SCRIPT, "input": {"reviews": ["Lovely place!", "Never again."]}}


_STEP: dict[str, Any] = {
    "status": "done", "reason": "", "kind": None, "failed_items": [], "seconds": 0.412, "calls": 2,
    "usage": {"prompt_tokens": 58, "completion_tokens": 4}, "cost": 0.0001, "reused": False,
}  # fmt: skip
_NO_CALLS: dict[str, Any] = {
    "calls": 0,
    "usage": {"prompt_tokens": 0, "completion_tokens": 0},
    "cost": None,
    "seconds": 0.001,
}
_RESULT: dict[str, Any] = {
    "status": "complete", "output": "1", "value": 1, "final": {"step": "final", "rule": "final"},
    "steps": {
        "mood": _STEP | {"output": '["glad", "sad"]', "value": ["glad", "sad"]},
        "final": _STEP | _NO_CALLS | {"output": "1", "value": 1},
    },
    "usage": {
        "calls": 2, "cached": 0, "prompt_tokens": 58, "completion_tokens": 4, "cost": 0.0001, "seconds": 0.414,
        "critical_path_seconds": 0.413,
    },
    "coerced": [], "diagnostics": [], "warnings": [], "run": "",
}  # fmt: skip


class RunScriptRequest(BaseModel):
    """A script in LWT, and what it runs on."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [_EXAMPLE]})

    script: str = Field(
        max_length=LONGEST,
        description="The script. LLM, CONST, EXPR, EACH and ANSWER; a script that comes over HTTP reads no files and no graph.",
    )
    input: Any = Field(default=None, description="The run's input, `{(input)}` in the script: any JSON value.")
    model: str | None = Field(
        default=None, description="The run's own model, by a name that the server offers; null: the server's default."
    )
    lenient: bool = Field(default=False, description="Read the script as text that a model wrote.")


class StepTold(BaseModel):
    """What became of a step."""

    status: str
    output: str | None = None
    value: Any
    reason: str
    kind: str | None = None
    failed_items: list[dict[str, Any]]
    seconds: float
    calls: int
    usage: dict[str, int]
    cost: float | None = None
    reused: bool


class RunScriptResponse(BaseModel):
    """The run. ``status``: complete, or partial where a step or an item failed and the final step has its output."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RESULT]})

    status: str = Field(examples=["complete"])
    output: str | None = Field(description="The final step's text")
    value: Any = Field(description="The final step's value")
    final: dict[str, str]
    steps: dict[str, StepTold]
    usage: dict[str, Any]
    coerced: list[dict[str, Any]] = Field(
        default=[],
        description="Typed answers that were read otherwise than they are written: step, item, type, how, said, output",
    )
    diagnostics: list[dict[str, Any]]
    warnings: list[str]
    run: str = Field(description="Always empty: runs of scripts are not kept")
