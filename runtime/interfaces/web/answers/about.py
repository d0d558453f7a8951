"""``GET /lab/about``: what the server offers, as a form needs to know it."""

from collections.abc import Mapping

from ..... import __version__
from ....answers.answer_results import ATTEMPTS, ITERATIONS, JUDGES
from ....answers.templates import BUILTIN, Template
from ..parts import Parts
from .schemas import About, Bound

__all__ = ["about_of", "can_judge"]


def about_of(parts: Parts, templates: Mapping[str, Template]) -> About:
    """Return what ``parts`` offer."""
    offered, limits = parts.offered, parts.settings.limits
    return About(
        version=__version__,
        models=list(offered.names),
        default=offered.default,
        can_judge={name: can_judge(model.spec) for name, model in offered.models.items()},
        needs_key=parts.keys.needed,
        templates=list({**BUILTIN, **templates}),
        bounds={
            "iter_max": Bound(min=1, max=ITERATIONS, default=3),
            "score_threshold": Bound(min=0.0, max=1.0, default=0.8),
            "attempts": Bound(min=1, max=ATTEMPTS, default=1),
            "judges": Bound(min=0, max=JUDGES, default=1),
        },
        runs=limits.runs_per_key if parts.keys.needed else limits.runs,
        seconds=parts.settings.run.seconds,
    )


def can_judge(spec: str) -> bool:
    """Say whether the model is one that can judge. The local default is too small to: it finds everything good."""
    return spec != "local" and not spec.startswith("local:")
