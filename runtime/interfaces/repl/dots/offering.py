"""What may stand behind a dot command: names of what the session has, for whoever completes what is typed."""

from collections.abc import Callable, Iterator

from .....lang.catalogue.rules import RULES
from .....lang.catalogue.schema import Schema
from .....lang.service import Known, complete
from ....models.wiring import SPECS
from ..desk import MODES, Desk
from . import DOTS
from .dot import Dot

__all__ = ["arguments"]

_DETAIL = 60
_LOGGED = 30


def arguments(dot: Dot, desk: Desk, schema: Callable[[], Schema | None]) -> Iterator[tuple[str, str]]:
    """Yield what the command takes, each with what it is; nothing where that is a file, or a text of the languages.

    ``schema`` gives the graph's, None as long as it is not there.
    """
    match dot.takes:
        case "attribute":
            known = schema()
            for name in dict.fromkeys([*known.node_attributes, *known.edge_attributes] if known is not None else ()):
                yield name, "attribute"
        case "value":
            for name in desk.values.names():
                yield name, "value"
        case "key":
            for declared in desk.state.snapshot().declared():
                yield declared.key, declared.type
        case "hash":
            history = desk.state.history
            for entry in reversed(list(history[max(0, len(history) - _LOGGED) :])):
                if entry.get("state"):
                    yield str(entry["state"])[:12], " ".join(str(entry.get("command", "")).split())[:_DETAIL]
        case "mode":
            yield from ((mode, "") for mode in MODES)
        case "switch":
            yield from (("on", ""), ("off", ""))
        case "model":
            yield from ((spec, "") for spec in SPECS)
        case "limit":
            yield from (("calls=", ""), ("tokens=", ""), ("cost=", "US dollars"))
        case "topic":
            yield from ((name, each.summary) for name, each in DOTS.items())
            yield from ((each.text, each.detail or each.kind) for each in complete("gasl", "", 0, Known()))
            yield from ((code, rule.name) for code, rule in RULES.items())
        case _:
            return
