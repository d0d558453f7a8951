"""Opens the target of an evaluation: a seed with contexts, a script, ``rank:ITEMS``, ``ask:GRAPH`` or ``answer``."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ...lang.diagnostic import nearest
from ...lang.trees.lwt import Script
from ...lang.trees.seed import FormulaSeed
from ..errors import RequestError
from ..loops.evaluate.seed_target import SeedTarget
from ..loops.evaluate.targets import Target
from ..seeds.reviews import Context, read_context
from .checks import CheckedScript, CheckedSeed
from .functions import host as host_of

if TYPE_CHECKING:
    from ..lwt.operations import Host

_FORMS = "a seed (.seed.json), a script (.lwt), rank:ITEMS, ask:GRAPH or answer"


@frozen
class PlannedCandidate:
    """A candidate before its model is opened. ``llm`` is a spec, a client, an ``OpenModel``, or None (results of a finished run)."""

    name: str
    target: Target
    llm: Any
    models: Mapping[str, Any] = field(factory=dict)
    options: Mapping[str, Any] = field(factory=dict)
    results: str = ""


def is_seed(target: Any) -> bool:
    """Return whether a target is a Formula Seed: an object, or a file that is neither a script nor another target."""
    if isinstance(target, FormulaSeed | CheckedSeed | Mapping):
        return True
    if isinstance(target, Script | CheckedScript) or not isinstance(target, str | Path):
        return False
    name = str(target)
    return not (name == "answer" or name.startswith(("rank:", "ask:")) or name.lower().endswith(".lwt"))


_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".duckdb", ".gz")


def check_seed_file(target: str | Path) -> None:
    """Check a target that is a file before the tables are read. Raises ``RequestError`` if it can't be a seed, and ``OSError``."""
    name = str(target)
    kind, colon, _ = name.partition(":")
    if colon and not Path(name).exists() and (near := nearest(kind, ("rank", "ask"))) is not None:
        raise RequestError("target", f"{name[:80]!r} is not a target", f"did you mean {near}:{name[len(kind) + 1 :]}?")
    if name.lower().endswith(_TABLES):
        raise RequestError(
            "target", f"{name[:80]} is a table, not a target", f"the gold table follows the target, which is {_FORMS}"
        )
    Path(name).stat()


def open_target(
    target: Any,
    contexts: Sequence[Context],
    *,
    use_filter: bool = True,
    group: str | None = None,
    threshold: float = 0.8,
    host: "Host | None" = None,
) -> Target:
    """Open a target; a ``CheckedSeed`` or a ``CheckedScript`` is not checked again.

    ``host`` is what the run offers to scripts (None: nothing).
    ``contexts`` and ``use_filter`` are used for seeds, ``threshold`` is used for answers.

    For targets other than seeds, ``group`` names the column that contains the group of each item.

    Raises ``SeedError``, ``ScriptError``, ``RequestError`` and ``OSError``.
    """
    if is_seed(target):
        return _seed(target, contexts, use_filter)
    if isinstance(target, Script | CheckedScript) or str(target).lower().endswith(".lwt"):
        return _script(target, group, host or host_of(None))
    if target == "answer":
        from ..loops.evaluate.loop_targets import AnswerTarget

        return AnswerTarget(threshold, group)
    kind, _, rest = str(target).partition(":")
    if not rest or kind not in ("rank", "ask"):
        raise RequestError("target", f"{str(target)[:80]!r} is not a target", f"a target is {_FORMS}")
    return _ranking(rest, group) if kind == "rank" else _question(rest, group)


def _seed(target: Any, contexts: Sequence[Context], use_filter: bool) -> Target:
    from ..seeds.compute import SeedError, load, require
    from ..seeds.seed_store import seed_text

    if isinstance(target, CheckedSeed):
        if target.failed or target.seed is None:
            raise SeedError(target.found, target.source)
        seed = load(target.seed)
    else:
        seed = load(target)
        require(seed)
    name = seed.source.name if seed.source.name not in ("", "<seed>") else seed.task_name or "the seed"
    return SeedTarget(seed, contexts, Path(name).name, seed_text(seed), use_filter)


def _script(target: Any, group: str | None, host: "Host") -> Target:
    from ...lang.source import Source
    from ..loops.evaluate.script_target import ScriptTarget
    from ..results import ScriptError
    from .checks import check_script, folder_of

    if isinstance(target, CheckedScript):
        checked = target
    else:
        source = target if isinstance(target, Script) else Source(Path(target).read_text(encoding="utf-8"), str(target))
        checked = check_script(source, host=host)
    if checked.failed:
        raise ScriptError(checked.found, checked.source)
    if checked.has_gasl_steps:
        raise RequestError(
            "target", f"{checked.source.name} has GASL steps, which need a graph", "evaluate questions with ask:GRAPH"
        )
    name = Path(checked.source.name).name
    return ScriptTarget(checked.script, name, checked.source.text, folder_of(checked.script), group, host=host)


def _ranking(items: str, group: str | None) -> Target:
    from ...adapters.llm.json_schema import read_json
    from ..loops.evaluate.loop_targets import RankTarget, items_source
    from ..loops.rank.ranker import prepare

    try:
        given = read_json(Path(items).read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise RequestError("target", f"{items} is not JSON: {error}"[:300]) from None
    work = prepare(given)
    return RankTarget(work, f"rank:{Path(items).name}", items_source(work), group)


def _question(graph: str, group: str | None) -> Target:
    from ..loops.evaluate.loop_targets import AskTarget
    from ..loops.evaluate.targets import AskSettings
    from ..models.factory import open_graph

    adapter = open_graph(graph).adapter

    async def answered(question: str, client: Any, settings: AskSettings) -> Any:
        from .ask import ask

        options = dict(settings.options)
        own = {name: options.pop(name) for name in _ASK_OPTIONS if name in options}
        return await ask(adapter, question, llm=client, events=settings.events, options=options, **own)

    return AskTarget(answered, f"ask:{Path(graph).name}", f"{graph} {adapter.schema.hash}", group)


_ASK_OPTIONS = ("max_steps", "max_repairs", "time_limit", "max_calls", "search", "value", "prompt_characters")
"""Options that a candidate of ``ask:GRAPH`` may have besides the options of its calls."""


def check_options(kind: str, name: str, models: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raise ``RequestError`` if a candidate has options or models that its kind of target does not use. No call is made."""
    from ...lang.diagnostic import suggestion
    from ..limits import OPTIONS, call_options
    from ..loops.evaluate.seed_target import SETTINGS
    from .seed_models import OPTIONS as PANEL

    own = {"seed": (*SETTINGS, *PANEL), "ask": _ASK_OPTIONS}.get(kind, ())
    calls = {"script": (), "rank": ("temperature",)}.get(kind, OPTIONS)
    known = (*own, *calls)
    for each in options:
        if each not in known:
            hint = suggestion(str(each), known, len(known), "a script has its options in its steps")
            raise RequestError("candidates", f"{name} has an unknown option {each!r:.60}", hint)
    call_options({each: value for each, value in options.items() if each in calls and each not in own})
    if models and kind not in ("script", "rank"):
        raise RequestError(
            "candidates",
            f"{name} names further models, which only scripts use",
            "for a vote of a seed, use the option vote",
        )


def read_contexts(
    source: Any, *, group: str | None = None, text: str | None = None, columns: Mapping[str, str] | None = None,
    query: str | None = None, encoding: str = "utf-8", meta: Mapping[str, str] | None = None,
    warn: Callable[[Sequence[str]], None] = lambda warnings: None,
) -> list[Context]:  # fmt: skip
    """Return the contexts that a file, a table or a list contains. Raises ``ContextError``, ``TableError`` and ``RequestError``.

    ``meta`` maps the metadata keys that the seed declares to their types; ``warn`` receives the warnings about a flat table.
    """
    nested = _nested(source)
    if nested is not None:
        if group is not None or text is not None or columns:
            raise RequestError(
                "contexts", "the contexts have reviews already", "group, text and columns are for flat tables"
            )
        return [each if isinstance(each, Context) else read_context(each, index) for index, each in enumerate(nested)]
    from ...adapters.tables.factory import open_table
    from ..seeds.table_columns import read_choices
    from ..seeds.table_contexts import TableContexts

    if isinstance(source, TableContexts):  # the result of seed.contexts
        found = [read_context(each, index) for index, each in enumerate(source)]
        warn(source.warnings)
        return found
    table = open_table(source, query=query, encoding=encoding)
    try:
        by = tuple(part.strip() for part in group.split(",")) if group else ()
        made = TableContexts(table, by, text, read_choices(columns or {}), meta=meta)
        found = [read_context(each, index) for index, each in enumerate(made)]
        warn(made.warnings)
        return found
    finally:
        table.close()


def _nested(source: Any) -> list[Any] | None:
    """Return the elements of ``source`` if the first one is a context or has ``reviews``; None for a flat table."""
    if isinstance(source, list | tuple):
        first = source[0] if source else None
        return (
            list(source) if isinstance(first, Context) or (isinstance(first, Mapping) and "reviews" in first) else None
        )
    if not isinstance(source, str | Path) or not str(source).lower().endswith((".json", ".jsonl", ".ndjson")):
        return None
    body = Path(source).read_text(encoding="utf-8-sig")
    try:
        if body.lstrip()[:1] == "[":
            found = json.loads(body)
        else:
            try:
                found = [json.loads(body)]
            except ValueError:
                found = [json.loads(line) for line in body.split("\n") if line.strip()]
    except ValueError as error:
        raise RequestError("contexts", f"{source} is not JSON: {error}"[:300]) from None
    first = found[0] if found else None
    return found if isinstance(first, Mapping) and "reviews" in first else None
