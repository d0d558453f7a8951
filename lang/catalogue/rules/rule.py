"""The class ``Rule``: a kind of fault or remark, with the reason why it matters and examples."""

from typing import Literal

from attrs import frozen

from ...diagnostic import Severity


@frozen
class Rule:
    """One kind of fault or remark.

    ``severity`` applies in strict mode. Lenient mode is for text from a model; if ``lenient`` is given, it is the severity in
    lenient mode. ``bad`` and ``good`` are the examples, two complete scripts. The examples are read in ``mode``. If ``input``
    (JSON text) is given, they are checked with this input. Rules for files have no examples. ``language`` is the language of
    the examples.
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
    language: Literal["lwt", "gasl", "plan", "json", "expr", "seed", "rank", "evaluation", "cases"] = "lwt"
