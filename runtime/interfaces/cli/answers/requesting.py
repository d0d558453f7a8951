"""Puts a request together: what was typed, over what a file says. Nothing is guessed: what does not fit is told with its place."""

import os
import shlex
from collections.abc import Mapping
from typing import Any

from attrs import evolve, fields

from .....lang.diagnostic import nearest
from ....answers.answer_results import JUDGES, AnswerRequest
from ....answers.checks import read_check
from ....errors import RequestError
from ..shared.exit import Misused
from ..shared.files import STDIN, Unreadable, only_one_stdin, read_input, read_source
from .asked import AnswerAsked, Typed, misused

__all__ = ["read_request"]

_NAMES = tuple(field.name for field in fields(AnswerRequest))
_OWN_MODEL = (None, "gpt-4o")
"""What a request says that leaves the model to whoever answers it: the seed's own default counts as nothing said."""
_EXAMPLE = '{"instruct": "Explain tides", "eval_crit": "Names the moon"}'


def read_request(asked: AnswerAsked) -> tuple[AnswerRequest, Typed]:
    """Return the request, and where its parts are from. Raises ``Misused``, and ``Unreadable`` for a file or stdin."""
    typed = dict(asked.typed)
    only_one_stdin([typed.get("instruct"), asked.request, asked.templates])
    instruct = typed.get("instruct")
    if instruct is None and asked.request is None:
        hint = 'knotwork answer "Explain tides" --criteria "Names the moon", or --request FILE'
        raise Misused("there is nothing to answer", hint)
    if instruct == STDIN:
        typed["instruct"] = read_source(STDIN).text.strip()
    elif instruct is not None:
        _no_file(instruct)
    said = _from_file(asked.request) if asked.request is not None else {}
    named = said.pop("model", None) or ""
    where = Typed(frozenset(typed), _shown(asked.request) if asked.request is not None else "", named)
    values = {**said, **typed}
    if "instruct" not in values:
        raise Misused(f"{where.file}: there is no instruct", f"a request is like {_EXAMPLE}")
    if asked.judges:
        if typed.get("judges") == 0:
            raise Misused("--judges 0: no judge is asked, and --judge-llm names one", "leave one of them out")
        if "judges" not in typed:
            if len(asked.judges) > JUDGES:
                raise Misused(f"--judge-llm: {len(asked.judges)} are too many", f"at most {JUDGES}")
            values["judges"] = len(asked.judges)
    try:
        values["checks"] = _checks(values.get("checks", ()))
        request = AnswerRequest(**values)
    except RequestError as error:
        raise misused(_nearer(error, values), where) from None
    return _judged(request, where, bool(typed.get("judges") or asked.judges)), where


def _judged(request: AnswerRequest, where: Typed, wanted: bool) -> AnswerRequest:
    """Return the request with somebody who judges; ``wanted``: judges were asked for by an option. Raises ``Misused`` where nobody does."""
    both = '--criteria "..." has a model judge it, --check words:40..120 needs none'
    if not request.eval_crit.strip() and not request.checks:
        raise Misused("nothing says what a good answer is", both)
    if not request.judges and not request.checks:
        raise Misused(f"{where.place('judges')}: 0, and there are no checks, so nobody judges", both)
    if not request.eval_crit.strip() and request.judges:
        if wanted:
            raise Misused(
                "there are judges, and no criteria for them to go by",
                '--criteria "...", or --judges 0 for checks alone',
            )
        return evolve(request, judges=0)
    return request


def _nearer(error: RequestError, values: Mapping[str, Any]) -> RequestError:
    """Return the error with what was probably meant: 85 for 0.85."""
    given = values.get("score_threshold")
    if error.parameter == "score_threshold" and isinstance(given, int | float) and 1 < given <= 100:
        return RequestError(error.parameter, error.message, error.hint or f"{given:g} in a hundred is {given / 100:g}")
    return error


def _checks(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple):
        raise RequestError(
            "checks", f"a list of checks is wanted, not {type(given).__name__}", 'such as ["words:40..120"]'
        )
    for number, check in enumerate(given):
        place = f"checks[{number}]"
        if not isinstance(check, str):
            raise RequestError(place, f"a text is wanted, not {type(check).__name__}", "such as words:40..120")
        try:
            read_check(check)
        except RequestError as error:
            raise RequestError(place, error.message, error.hint) from None
    return tuple(given)


def _no_file(instruct: str) -> None:
    """Refuse the name of a file in the place of the instruction."""
    if not instruct or any(character.isspace() for character in instruct) or not os.path.isfile(instruct):
        return
    name = shlex.quote(instruct)
    if instruct.endswith(".json"):
        raise Misused(
            f"{instruct} is a file, not an instruction", f"a request in a file: knotwork answer --request {name}"
        )
    raise Misused(f"{instruct} is a file, not an instruction", f"an instruction in a file: knotwork answer - < {name}")


def _shown(name: str) -> str:
    return "<stdin>" if name == STDIN else name


def _from_file(name: str) -> dict[str, Any]:
    """Return what a file says of a request. Raises ``Unreadable`` and ``Misused``."""
    try:
        said = read_input(name)
    except Unreadable as error:
        hints = tuple(hint for hint in error.diagnostic.hints if "knotwork run" not in hint)
        if error.diagnostic.code == "KW004":
            hints = (*hints, f"a request is like {_EXAMPLE}")
        raise Unreadable(evolve(error.diagnostic, hints=hints), error.source) from None
    shown = _shown(name)
    if not isinstance(said, dict):
        raise Misused(f"{shown}: a request is a JSON object, not {_kind(said)}", f"such as {_EXAMPLE}")
    for key in said:
        if key not in _NAMES and key != "model":
            like = nearest(key, _NAMES)
            raise Misused(
                f"{shown}: there is no key {key}", f"did you mean {like}?" if like else f"there are {', '.join(_NAMES)}"
            )
    model = said.get("model")
    if model not in _OWN_MODEL:
        # A file may be somebody else's, and an address gets a key: who types the command says where it goes.
        raise Misused(
            f"{shown}: model: a request can't choose {model!r} here", "leave it out, and name the model by --llm SPEC"
        )
    return said


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "true or false", type(None): "null"}.get(type(value), "a number")
