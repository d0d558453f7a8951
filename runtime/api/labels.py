"""Opens a session in which a person labels reviews: picks the reviews, and opens the file of the labels."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import load_on_first_use

if TYPE_CHECKING:
    from ...adapters.tables.port import TableError as TableError
    from ...lang.trees.seed import Extracted as Extracted
    from ...lang.trees.seed import FormulaSeed
    from ..loops.evaluate.label_file import LABELLED as LABELLED
    from ..loops.evaluate.label_queue import LabelError as LabelError
    from ..loops.evaluate.label_queue import LabelItem, Pick
    from ..loops.evaluate.label_session import LabelSession as LabelSession
    from ..loops.evaluate.label_session import read_typed as read_typed
    from ..seeds.reviews import Context
    from ..seeds.reviews import ContextError as ContextError
    from ..seeds.seed_results import ResultFault as ResultFault

if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(
        __name__,
        {
            "ContextError": "runtime.seeds.reviews", "Extracted": "lang.trees.seed", "LABELLED": "runtime.loops.evaluate.label_file",
            "LabelError": "runtime.loops.evaluate.label_queue", "LabelSession": "runtime.loops.evaluate.label_session",
            "ResultFault": "runtime.seeds.seed_results", "TableError": "adapters.tables.port",
            "read_typed": "runtime.loops.evaluate.label_session",
        },
    )  # fmt: skip


def open_labels(
    seed: "FormulaSeed",
    data: Any,
    out: str | Path,
    *,
    sample: int = 100,
    pick: "Pick" = "random",
    results: Sequence[str | Path] = (),
    stratify: str | None = None,
    show: bool = False,
    annotator: str = "",
    fields: Sequence[str] = (),
    use_filter: bool = True,
    random_state: int = 0,
    group: str | None = None,
    text: str | None = None,
    columns: Mapping[str, str] | None = None,
    query: str | None = None,
    encoding: str = "utf-8",
    warn: Callable[[str], None] = lambda message: None,
) -> "LabelSession":
    """Open a session to label ``sample`` reviews of ``data`` (contexts, or a flat table).

    The labels are stored in ``out`` (.csv or .tsv). ``pick`` is "random", "disagree" (reviews for which two or more finished
    runs, given as ``results``, have different values) or "unsure" (reviews for which ``results[0]`` has low confidence or
    invalid values). ``stratify`` names a column: among the picked reviews, the values of this column are about as frequent as
    among all reviews (random picks only). ``show``: whether the answers of ``results[0]`` are visible. ``fields`` are the
    fields to label (default: all). ``use_filter``: whether only reviews that the seed's filter keeps are labelled. If ``out``
    exists, the session adds to the labels by ``annotator`` in this file. ``group``, ``text``, ``columns``, ``query`` and
    ``encoding`` are for flat tables. The caller closes ``file`` of the session.

    Raises ``LabelError``, ``ContextError``, ``TableError``, ``ResultFault``, ``RequestError`` and ``OSError``.
    """
    from ..loops.evaluate.label_file import LabelFile
    from ..loops.evaluate.label_queue import LabelError, extractions_by_place, label_items
    from ..loops.evaluate.label_session import LabelSession
    from ..seeds.seed_results import read_results
    from .evaluation_targets import read_contexts
    from .files import replace_file

    def warn_all(warnings: Sequence[str]) -> None:
        for each in warnings:
            warn(each)

    chosen = _fields(seed, fields)
    _check(pick, results, stratify, show)
    contexts = read_contexts(
        data, group=group, text=text, columns=columns, query=query, encoding=encoding, meta=seed.meta,
        warn=warn_all,
    )  # fmt: skip
    items = label_items(seed, contexts, use_filter=use_filter)
    if not items:
        raise LabelError(
            "no review can be labelled: the filter of the seed keeps none" if use_filter else "no review has a text",
            "--no-filter labels all reviews" if use_filter else "",
        )
    names = [each.name for each in chosen]
    runs = [extractions_by_place(read_results(Path(each).read_bytes()), contexts, str(each)) for each in results]
    picked = _picked(items, contexts, runs, names, pick, sample, random_state, stratify)
    if not picked:
        raise LabelError("the runs agree on every review", "pick at random: --pick random")
    _check_keys(seed, contexts, picked)
    if show:
        picked = [_with_answers(item, runs[0], names) for item in picked]
    return LabelSession(picked, LabelFile.open(Path(out), chosen, annotator, replace_file), show)


def _fields(seed: "FormulaSeed", names: Sequence[str]) -> "list[Extracted]":
    from ...lang.diagnostic import nearest
    from ..loops.evaluate.label_queue import LabelError

    known = {each.name: each for each in seed.fields}
    for name in names:
        if name not in known:
            like = nearest(name, list(known))
            raise LabelError(
                f"unknown field {name!r}{f'; did you mean {like!r}?' if like else ''}",
                f"the fields are: {', '.join(known)}",
            )
    if not known:
        raise LabelError("the seed extracts no field, so nothing can be labelled")
    return [each for name, each in known.items() if not names or name in names]


def _check(pick: str, results: Sequence[Any], stratify: str | None, show: bool) -> None:
    from ..loops.evaluate.label_queue import LabelError

    if pick == "disagree" and len(results) < 2:
        raise LabelError("--pick disagree compares the results of at least two runs", "--results A.jsonl,B.jsonl")
    if pick == "unsure" and not results:
        raise LabelError("--pick unsure needs the results of a run", "--results RESULTS.jsonl")
    if show and not results:
        raise LabelError("--show shows the answers of a run", "add --results RESULTS.jsonl")
    if stratify is not None and pick != "random":
        raise LabelError(f"--stratify applies only to random picks, not to --pick {pick}")


def _picked(
    items: "Sequence[LabelItem]", contexts: "Sequence[Context]", runs: Sequence[Any], names: Sequence[str], pick: str, sample: int,
    random_state: int, stratify: str | None,
) -> "list[LabelItem]":  # fmt: skip
    from ..loops.evaluate.label_queue import pick_disagreements, pick_random, pick_unsure, stratum_reader

    if pick == "disagree":
        return pick_disagreements(items, runs, names, sample, random_state)
    if pick == "unsure":
        return pick_unsure(items, runs[0], names, sample, random_state)
    strata = None if stratify is None else stratum_reader(stratify, contexts, runs[0] if runs else {})
    return pick_random(items, sample, random_state, strata)


def _check_keys(seed: "FormulaSeed", contexts: "Sequence[Context]", picked: "Sequence[LabelItem]") -> None:
    """Raise ``LabelError`` unless ``knotwork eval`` can find each picked review by its keys."""
    from ..loops.evaluate.label_queue import LabelError
    from ..loops.evaluate.seed_target import SeedTarget

    target = SeedTarget(seed, contexts)
    for item in picked:
        bound = target.bind({name: value for name, value in item.keys.items() if value})
        if bound.fault or bound.place != item.place:
            reason = bound.fault or "another review has the same keys"
            raise LabelError(
                f"a label of this review can't be found again: {reason}",
                "give contexts different names, or reviews ids",
            )


def _with_answers(item: "LabelItem", run: Mapping[Any, Any], names: Sequence[str]) -> "LabelItem":
    from attrs import evolve

    found = run.get(item.place)
    if found is None:
        return item
    invalid = {name: f"invalid: {found.invalid[name]}" for name in names if name in found.invalid}
    answers = (
        {"": f"failed: {found.failed}"}
        if found.failed
        else {name: found.extraction.get(name) for name in names} | invalid
    )
    return evolve(item, answers=answers)
