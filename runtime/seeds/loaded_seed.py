"""What ``seed.load`` gives: a Formula Seed that can check itself, and the error for one that can't be read."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.source import Source
from ...lang.trees import seed as tree
from ..results import ScriptError

__all__ = ["FormulaSeed", "SeedError", "check", "load", "require", "text_of"]


class SeedError(ScriptError):
    """A seed with errors. ``diagnostics`` has at least one error; ``str`` pictures the errors."""


@frozen(slots=False)
class FormulaSeed(tree.FormulaSeed):
    """A seed that was read without an error."""

    def check(self, data: Any = None) -> list[Diagnostic]:
        """Return all that is wrong or doubtful, by place; with contexts as ``data`` also what only they show."""
        return check(self, data)


def load(source: Any) -> FormulaSeed:
    """Read a seed: a path, its JSON text, its JSON object, or a seed. Raises ``SeedError`` where it has errors, ``OSError``."""
    from ...lang.documents.seed import read_seed

    if isinstance(source, tree.FormulaSeed):
        found: tree.FormulaSeed | None = source
        diagnostics, text = source.diagnostics, source.source
    else:
        read = read_seed(text_of(source))
        found, diagnostics, text = read.seed, read.diagnostics, read.source
    if found is None or has_errors(diagnostics):
        raise SeedError(diagnostics, text)
    if isinstance(found, FormulaSeed):
        return found
    return FormulaSeed(**{each.name: getattr(found, each.name) for each in attrs.fields(tree.FormulaSeed)})


def text_of(source: Any) -> "Source | Mapping[str, Any]":
    """Return the text, or the JSON object, of a seed: a path is read. Raises ``OSError``."""
    if isinstance(source, Source | Mapping):
        return source
    if isinstance(source, str) and source.lstrip()[:1] in ("{", ""):
        return Source(source, "<seed>")
    path = Path(source)
    return Source(path.read_text(encoding="utf-8"), str(source))


def check(seed: tree.FormulaSeed, data: Any = None) -> list[Diagnostic]:
    """Return what is wrong with ``seed``, by place. ``data`` is a context or a list of them: what the filter keeps of their
    reviews is looked at as well. Raises ``ContextError`` for what is no context.
    """
    from ...lang.linter.seed import Kept
    from ...lang.linter.seed import check as lint

    if data is None:
        return lint(seed)
    from .extraction_prompts import parts_of
    from .reviews import FilterError, Keeper, keyword_counts, read_context  # most checks have no reviews

    contexts: Sequence[Any] = list(data) if isinstance(data, list | tuple) else [data]
    texts = [review.text for index, each in enumerate(contexts) for review in read_context(each, index).reviews]
    try:
        counts, kept, total = keyword_counts(seed, texts)
    except FilterError:  # the linter says so, with its place
        return lint(seed, contexts=contexts)
    keeper = Keeper.of(seed)
    read = [text for text in texts if keeper.keeps(text)]
    cuts = [cut for cut in (parts_of(text, seed.review_handling, False).cut for text in read) if cut]
    found = Kept([each.kept for each in counts], kept, total, sum(map(len, read)), len(cuts), sum(cuts))
    return lint(seed, contexts=contexts, kept=found)


def require(seed: tree.FormulaSeed, data: Iterable[Any] | None = None) -> None:
    """Raise ``SeedError`` where ``seed`` has errors."""
    found = check(seed, None if data is None else list(data))
    if has_errors(found):
        raise SeedError(found, seed.source)
