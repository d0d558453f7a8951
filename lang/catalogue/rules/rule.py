"""The class ``Rule``: a kind of fault or remark, with the reason why it matters and examples."""

from typing import Literal

from attrs import frozen

from ...diagnostic import Severity


@frozen
class Rule:
    """One kind of fault or remark.

    ``severity`` applies in strict mode; ``lenient``, if given, replaces it in lenient mode, for text from a model. ``bad`` and
    ``good`` are whole scripts, read in ``mode`` and checked against ``input`` (JSON text) if given; rules for files have no
    examples. ``language`` is the language of the examples.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    why: str
    bad: str = ""
    good: str = ""
    lenient: Severity | None = None
    mode: Literal["strict", "lenient"] = "strict"
    input: str | None = None
    language: Literal["lwt", "gasl", "plan", "json", "expr", "seed", "rank"] = "lwt"
