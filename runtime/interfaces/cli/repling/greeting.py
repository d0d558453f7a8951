"""The first screen: what there is to work on, and a command to try. It asks for nothing that takes a while."""

import re
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version

from .....adapters.graph import AdapterError, GraphAdapter, Item
from .....adapters.llm.keys import mask_keys
from .....lang.diagnostic import printable
from .....lang.parse.gasl import parse_gasl
from ....session.workspace import Ground
from ...repl.desk import Desk
from ...repl.models import Model
from ...repl.nearby import LISTED
from ..shared.output import say

__all__ = ["greet", "worth_trying"]

_SAMPLE = 200
"""Nodes that are looked at to find an attribute to try."""
_MOST_KINDS = 20
_LONGEST = 40
_TELLING = re.compile(r"(?:\A|_)(?:type|kind|label|labels|category|class|group)\Z", re.IGNORECASE)
"""Names of attributes that say what a node is."""
_SPEC = 60


def greet(ground: Ground, desk: Desk) -> None:
    """Say what there is, and what one could do with it."""
    say(f"knotwork {version('knotwork')}")
    for name, told in (("graph", _graph(desk)), ("state", _state(ground, desk)), ("model", _model(desk.model))):
        say(printable(f"  {name}  {told}"))
    say(printable(f"  try    {worth_trying(desk.adapter)}"))
    say(".help tells more")


def _graph(desk: Desk) -> str:
    if desk.adapter is None:
        return "none · knotwork repl GRAPH opens one, as nx:les_miserables"
    sizes = [desk.adapter.explain(kind, None).rows for kind in ("nodes", "edges")]
    counted = ", ".join(f"{n:,} {what}{'' if n == 1 else 's'}" for n, what in zip(sizes, ("node", "edge"), strict=True))
    return f"{desk.graph} · {counted}" if desk.graph else counted


def _state(ground: Ground, desk: Desk) -> str:
    if ground.state is None:
        return "in memory · --state DIR keeps it"
    keys = [each.key for each in desk.state.snapshot().declared()]
    more = f", and {len(keys) - LISTED:,} more" if len(keys) > LISTED else ""
    return f"{ground.state} · {', '.join(keys[:LISTED])}{more}" if keys else f"{ground.state} · no key is declared yet"


def _model(model: Model) -> str:
    from .....adapters.llm import LLMError
    from .....adapters.llm.weights import SMOLLM2, installed

    try:
        spec = model.shown
    except LLMError:
        return "none · .llm SPEC names one"
    if spec == "local" and not any(each.name == SMOLLM2.name for each in installed()):
        return f"local · fetched when it is first asked ({SMOLLM2.wheel_size / 1e6:.0f} MB)"
    shown = mask_keys(spec)
    return shown if len(shown) <= _SPEC else f"{shown[: _SPEC - 1]}…"


def worth_trying(adapter: GraphAdapter | None) -> str:
    """Return a text that does something on this graph: its most frequent kind of node where its first nodes have kinds."""
    if adapter is None:
        return "sum(n * n for n in [1, 2, 3])"
    try:
        kind = _kind(list(adapter.nodes(None, limit=_SAMPLE).items))
    except AdapterError:
        kind = None
    where = "" if kind is None else f'WHERE {kind[0]} = "{kind[1]}" '
    return f"FIND nodes {where}ORDER BY degree DESC LIMIT 10 AS hubs"


def _kind(nodes: list[Item]) -> tuple[str, str] | None:
    """Return an attribute that says what nodes are, and its most frequent value; None where none does."""
    seen: dict[str, Counter[str]] = {}
    for node in nodes:
        for name, value in node.items():
            if name != "id" and isinstance(value, str):
                seen.setdefault(name, Counter())[value] += 1
    for name, counts in sorted(_telling(seen, len(nodes)), key=lambda pair: _TELLING.search(pair[0]) is None):
        value = counts.most_common(1)[0][0]
        command = f'FIND nodes WHERE {name} = "{value}" AS hubs'
        # A name or a value that has to be quoted in some way is none to begin with.
        if re.fullmatch(r"[\w .,-]+", value) and len(value) <= _LONGEST and not parse_gasl(command).diagnostics:
            return name, value
    return None


def _telling(seen: dict[str, Counter[str]], nodes: int) -> Iterator[tuple[str, Counter[str]]]:
    """Yield the attributes of at least half the nodes that have few values, and more than one."""
    for name, counts in seen.items():
        if 2 * counts.total() >= nodes and 1 < len(counts) <= min(_MOST_KINDS, nodes // 3):
            yield name, counts
