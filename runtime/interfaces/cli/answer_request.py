"""Builds the request of ``answer`` from options and a file.

An error names the option, or the file and the key, that is at fault.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, fields, frozen

from ....lang.diagnostic import nearest
from ...api.answers import AnswerRequest, RequestError, Template, check_texts, read_templates
from .inputs import STDIN, Unreadable, only_one_stdin, read_input, read_source
from .output import Misused

_OPTIONS = {
    "instruct": "INSTRUCTION", "resp_format": "--resp-format", "eval_crit": "--criteria", "iter_max": "--iter-max",
    "score_threshold": "--threshold", "attempts": "--attempts", "judges": "--judges", "checks": "--check",
    "template": "--template", "templates": "--templates", "judges_models": "--judge-llm", "examples": "--examples",
    "time_limit": "--time-limit", "temperature": "--temperature", "max_tokens": "--answer-tokens",
}  # fmt: skip
"""Maps each parameter of a request to its name on the command line."""
_NAMES = tuple(field.name for field in fields(AnswerRequest))
_EXAMPLE = '{"instruct": "Explain tides", "eval_crit": "Names the moon"}'
_CRITERIA = 'add --criteria "..." for a judge, or --check words:40..120, which needs no judge'


@frozen
class RequestSource:
    """The source of each parameter of a request. ``options`` contains the names of the parameters given as options.

    The other parameters come from ``file`` ("" means no file). ``model`` is the name of a model in the file; it does not select
    the model.
    """

    options: frozenset[str]
    file: str = ""
    model: str = ""

    def place(self, parameter: str) -> str:
        """Return the name of a parameter as the user wrote it: the option, or the file and the key."""
        name = parameter.partition("[")[0]
        return f"{self.file}: {parameter}" if self.file and name not in self.options else _OPTIONS.get(name, parameter)

    def usage_error(self, error: RequestError) -> Misused:
        """Convert an error in a request to a usage error that names the option, or the file and the key."""
        return Misused(f"{self.place(error.parameter)}: {error.message}", error.hint)


def read_request(
    options: Mapping[str, Any], file: str | None, templates: str | None, judges: Sequence[str]
) -> tuple[AnswerRequest, RequestSource]:
    """Return the request, and the sources of its parameters.

    ``options`` override the values in the file; ``judges`` contains the models of --judge-llm. Raises ``Misused``. Raises
    ``Unreadable`` if a file or stdin can't be read.
    """
    instruct, options = options.get("instruct"), dict(options)
    only_one_stdin([instruct, file, templates])
    if instruct is None and file is None:
        hint = 'knotwork answer "Explain tides" --criteria "Names the moon", or --request FILE'
        raise Misused("the instruction is missing", hint)
    if instruct == STDIN:
        options["instruct"] = read_source(STDIN).text.strip()
    elif instruct and not any(map(str.isspace, instruct)) and os.path.isfile(instruct):
        name = shlex.quote(instruct)
        hint = f"read a request from the file: knotwork answer --request {name}"
        if not instruct.endswith(".json"):
            hint = f"read the instruction from the file: knotwork answer - < {name}"
        raise Misused(f"{instruct} is a file, not an instruction", hint)
    values = {} if file is None else _from_file(file)
    model = values.pop("model", None) or ""
    source = RequestSource(frozenset(options), "" if file is None else _display_name(file), model)
    values |= options
    if "instruct" not in values:
        raise Misused(f"{source.file}: the key instruct is missing", f"a request looks like {_EXAMPLE}")
    if judges:
        if options.get("judges") == 0:
            raise Misused("--judges 0 and --judge-llm contradict each other", "give only one of them")
        values["judges"] = options.get("judges", len(judges))
    try:
        values["checks"] = check_texts(values.get("checks", ()))
        request = AnswerRequest(**values)
    except RequestError as error:
        score = values.get("score_threshold")
        if error.parameter == "judges" and "judges" not in options:
            raise Misused(f"--judge-llm: {error.message}", error.hint) from None
        if error.parameter == "score_threshold" and isinstance(score, int | float) and 1 < score <= 100:
            error = RequestError(error.parameter, error.message, error.hint or f"{score:g} % is {score / 100:g}")
        raise source.usage_error(error) from None
    has_criteria = bool(request.eval_crit.strip())
    if not has_criteria and not request.checks:
        raise Misused("the criteria for a good answer are missing", _CRITERIA)
    if not request.judges and not request.checks:
        raise Misused(f"{source.place('judges')}: no judge and no check evaluates the answer", _CRITERIA)
    if request.judges and not has_criteria:
        if options.get("judges") or judges:
            raise Misused("the judges need criteria", '--criteria "...", or --judges 0 if only checks evaluate')
        request = evolve(request, judges=0)
    return request, source


def _display_name(name: str) -> str:
    return "<stdin>" if name == STDIN else name


def _from_file(name: str) -> dict[str, Any]:
    """Return the parameters in a request file. Raises ``Unreadable`` or ``Misused``."""
    try:
        values = read_input(name)
    except Unreadable as error:
        hints = tuple(hint for hint in error.diagnostic.hints if "knotwork run" not in hint)
        if error.diagnostic.code == "KW004":
            hints = (*hints, f"a request looks like {_EXAMPLE}")
        raise Unreadable(evolve(error.diagnostic, hints=hints), error.source) from None
    shown = _display_name(name)
    if not isinstance(values, dict):
        kinds = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
        kind = kinds.get(type(values), "a number")
        raise Misused(f"{shown}: a request is a JSON object, not {kind}", f"such as {_EXAMPLE}")
    for key in values:
        if key not in (*_NAMES, "model"):
            like = nearest(key, _NAMES)
            hint = f"did you mean {like}?" if like else f"valid keys: {', '.join(_NAMES)}"
            raise Misused(f"{shown}: unknown key {key}", hint)
    if values.get("model") not in (None, "gpt-4o"):  # gpt-4o, the default in older files, counts as missing
        # A file may come from another person, and the address of a model receives an API key. So only the user may choose the model.
        problem = f"{shown}: model: a file can't choose the model {values['model']!r}"
        raise Misused(problem, "remove the key, and choose the model with --llm SPEC")
    return values


def open_templates(name: str | None) -> Mapping[str, Template]:
    """Return the templates in the file ``name``; an empty mapping if it is None. Raises ``Unreadable`` or ``Misused``."""
    if name is None:
        return {}
    try:
        return read_templates(read_input(name))
    except Unreadable as error:
        form = 'templates are a JSON object: {"NAME": {"generator": "...", "evaluator": "...", "feedback": "..."}}'
        hints = (form,) if error.diagnostic.code == "KW004" else error.diagnostic.hints
        raise Unreadable(evolve(error.diagnostic, hints=hints), error.source) from None
    except RequestError as error:
        raise Misused(f"{name}: {error.message}", error.hint) from None
