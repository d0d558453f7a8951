"""PARAM: declares the parameters of a program, and binds them to the values that are given from outside."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....lang.diagnostic import nearest
from ....lang.literals import kind_of, short
from ....lang.trees.gasl import Param, Program
from ..errors import ExecutionError
from ..records import ExecutionResult, Runner, Session, Value
from .bindings import Refused, in_thread


@in_thread
def run_param(command: Param, session: Session) -> ExecutionResult:
    """Run PARAM: bind the value given from outside, else the value of the already bound variable, else the default.

    A variable that was bound by an earlier PARAM is ignored. If there is no value, the result is ``binding_failure``; a value
    of another type is a ``schema_mismatch``.
    """
    name = command.name.text
    bound = session.context.value(name)
    if name in session.parameters:
        value = Value(session.parameters[name])
    elif bound is not None and _is_from_outside(name, session):
        value = bound
    elif command.default is not None:
        value = Value(command.default.value)
    else:
        raise _without_value([name, *(each for each in session.missing if each != name)], command)
    if fault := parameter_fault(command, value.value):
        raise Refused("schema_mismatch", fault)
    if value is not bound:
        session.declared[name] = value
    return ExecutionResult(value=value, summary={"value": value.value})


def _without_value(names: Sequence[str], command: Param) -> Refused:
    """Return the ``Refused`` for parameters without a value; ``command`` declares the first such parameter.

    The hint says how to give a value in each interface, because this module does not know which interface runs the program.
    """
    name = names[0]
    options = " ".join(f"--param {each}=..." for each in names)
    given = ", ".join(f'"{each}": ...' for each in names)
    hint = (
        f"give it on the command line with {options}, in Python with params={{{given}}}, over MCP with parameters={{{given}}}, in the "
        f"REPL or a notebook with {name} = ... before the command, or write a default: PARAM {name} {command.type} = ..."
    )
    if len(names) == 1:
        return Refused("binding_failure", f"the parameter {name} has no value", hint)
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return Refused(
        "binding_failure", f"the parameters {listed} have no values", hint.replace("give it", "give them", 1)
    )


_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "TEXT": ("a text", lambda value: isinstance(value, str)),
    "INT": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "FLOAT": (
        "a number",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0,
    ),
    "BOOL": ("true or false", lambda value: isinstance(value, bool)),
    "LIST": ("a list", lambda value: isinstance(value, list)),
}


def parameter_fault(command: Param, value: Any) -> str | None:
    """Return the reason why a parameter cannot have ``value``, or None. Null is allowed only as the default."""
    what, fits = _TYPES[command.type]
    if fits(value) or (value is None and command.default is not None and command.default.value is None):
        return None
    given = short(value) if isinstance(value, str) else kind_of(value)
    return f"the parameter {command.name.text} is {what}, but its value is {given}"


def parameters_of(program: Program) -> dict[str, Param]:
    """Return a mapping from names to the parameters of a program, in source order."""
    commands = (statement.command for statement in program.statements)
    return {command.name.text: command for command in commands if isinstance(command, Param)}


def give_parameters(program: Program, given: Mapping[str, Any], session: Session) -> None:
    """Give values to the parameters of ``program``. They replace the values given to an earlier program.

    Raises ``ExecutionError`` for a name that is not a parameter of the program.
    """
    session.parameters = checked_parameters(program, given)
    session.missing = tuple(
        name for name, command in parameters_of(program).items()
        if name not in session.parameters and command.default is None and not _is_from_outside(name, session)
    )  # fmt: skip


def _is_from_outside(name: str, session: Session) -> bool:
    """Return whether a variable is bound, and not by an earlier PARAM."""
    bound = session.context.value(name)
    return bound is not None and bound is not session.declared.get(name)


def checked_parameters(program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``given`` as a dictionary. Raises ``ExecutionError`` for a name that is not a parameter of the program."""
    known = parameters_of(program)
    for name in given:
        if name not in known:
            like = nearest(name, known)
            hint = f"did you mean {like}?" if like else f"its parameters are {', '.join(known)}" if known else ""
            hint = hint or f"write PARAM {name} INT before the first command"
            raise ExecutionError(f"the program has no parameter {name}", hint=hint)
    return dict(given)


def parameters_of_texts(program: Program, texts: Sequence[str]) -> dict[str, Any]:
    """Return the values in strings ``name=value``, each converted to the type of the program's parameter.

    A LIST is written as a JSON array, a BOOL as true or false. Raises ``ExecutionError`` for an unknown name, or if a string can't
    be converted to the type.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ExecutionError(f"{short(text)} is not a name and a value", hint="for example limit=5000")
        pairs[name.strip()] = value
    known = parameters_of(program)
    return {name: _converted(known[name], text) for name, text in checked_parameters(program, pairs).items()}


def _converted(command: Param, text: str) -> Any:
    value: Any = text
    if command.type != "TEXT":
        try:
            value = json.loads(text, parse_constant=lambda name: name)
        except (ValueError, RecursionError):
            value = text
    if fault := parameter_fault(command, value):
        hint = 'write a JSON array, such as ["a", "b"]' if command.type == "LIST" else ""
        raise ExecutionError(fault, hint=hint)
    return value


RUNNERS: Mapping[type, Runner] = {Param: run_param}
