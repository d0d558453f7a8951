"""A call of a tool, from the arguments as they came to the result as it is sent. Nothing that goes wrong gets out as a traceback."""

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen
from pydantic import ValidationError

from ....lang.diagnostic import nearest, printable
from ...gasl.records import storable
from ..http.faults import unexpected
from .catalogue import TOOLS
from .ground import Ground
from .progress import Tell
from .refusals import Refused, of_arguments
from .tools.tool import Call

__all__ = ["Told", "called", "unknown"]


@frozen
class Told:
    """A result as it is sent: the structure, the same as JSON text, and whether the call failed."""

    structure: dict[str, Any]
    text: str
    failed: bool


def unknown(name: str, ground: Ground) -> str:
    """Return what to say of a tool that is not offered; "" where it is."""
    tool = TOOLS.get(name)
    if tool is not None:
        why = tool.absent(ground)
        return f"{name} is not offered: {why}" if why else ""
    offered = [each for each, known in TOOLS.items() if not known.absent(ground)]
    like = nearest(name, offered)
    return f"there is no tool {printable(name[:80])}; " + (
        f"did you mean {like}?" if like else f"there are: {', '.join(offered)}"
    )


async def called(name: str, arguments: Mapping[str, Any] | None, ground: Ground, who: str, tell: Tell) -> Told:
    """Call the tool ``name``, which is offered, and return what it gives."""
    tool = TOOLS[name]
    try:
        try:
            asked = tool.takes.model_validate(dict(arguments or {}))
        except ValidationError as error:
            raise of_arguments(error, tool.takes) from None
        result = await tool.run(Call(ground, who, tell), asked)
        structure = result.model_dump(mode="json")
        failed = structure.get("status") == "refused" or result.error is not None
    except Refused as refused:
        structure, failed = {"error": refused.as_json()}, True
    except Exception as error:  # the last door: a fault of ours is told under a number, without what a client wrote
        number = unexpected(error).members["error"]
        told = Refused("internal", f"the server failed; its log says more under {number}", "it is no fault of yours")
        structure, failed = {"error": told.as_json()}, True
    structure = storable({name: value for name, value in structure.items() if value is not None and value != ""})
    return Told(structure, json.dumps(structure, ensure_ascii=False, separators=(",", ":")), failed)
