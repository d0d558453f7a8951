"""DSPy signatures: ``question, context: list[str] -> answer: float``, and classes that derive from ``dspy.Signature``.

A class is read as text, and never run.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from ...trees.lwt import Choice, Key, Reference, Template, Text, Word
from . import ImportedScript, Notes, NotImportable, joined, llm_script, step_name

_ARROW = re.compile(r"\A[^\n{}]*->[^\n{}]*(?:\n|\Z)")
_TYPES = {"str": "text", "int": "int", "float": "float", "bool": "bool"}
_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_LISTS = ("list", "List")


@frozen
class _Field:
    name: str
    type: ast.expr | None
    about: str = ""


def is_dspy(text: str) -> bool:
    """Return whether a text is a signature, or Python code with a class that derives from ``dspy.Signature``."""
    return bool(_ARROW.match(text.strip())) or bool(re.search(r"class\s+\w+\((?:dspy\.)?Signature\)\s*:", text))


def read_dspy(text: str, name: str, notes: Notes) -> tuple[ImportedScript, ...]:
    """Return the scripts of the signatures in a text. After a signature in one line, the other lines are its instructions."""
    stripped = text.strip()
    if _ARROW.match(stripped):
        head, _, rest = stripped.partition("\n")
        left, _, right = head.strip("\"' ").partition("->")
        return (ImportedScript(name, _script(_fields(left), _fields(right), rest.strip())),)
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise NotImportable(f"the Python code can't be read: {error}") from None
    found = []
    for node in module.body:
        if not isinstance(node, ast.ClassDef) or not any(
            ast.unparse(base).endswith("Signature") for base in node.bases
        ):
            continue
        sides: dict[str, list[_Field]] = {"InputField": [], "OutputField": []}
        for each in node.body:
            if isinstance(each, ast.AnnAssign | ast.Assign):
                _add(each, sides, f"{node.name}.", notes)
        try:
            script = _script(sides["InputField"], sides["OutputField"], ast.get_docstring(node) or "")
        except NotImportable as error:
            notes.drop(node.name, str(error))
            continue
        found.append(ImportedScript(step_name(node.name, name), script))
    others = [node for node in module.body if not isinstance(node, ast.ClassDef | ast.Import | ast.ImportFrom)]
    if [each for each in others if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]:
        notes.drop("the other Python code", "modules and programs are not imported, only signatures")
    return tuple(found)


def _add(node: ast.AnnAssign | ast.Assign, sides: Mapping[str, list[_Field]], place: str, notes: Notes) -> None:
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    side = ast.unparse(node.value.func).rpartition(".")[2] if isinstance(node.value, ast.Call) else ""
    if not isinstance(target, ast.Name) or side not in sides or not isinstance(node.value, ast.Call):
        notes.drop(f"{place}{ast.unparse(target)}", "it is neither an InputField nor an OutputField")
        return
    about = ""
    for keyword in node.value.keywords:
        if keyword.arg == "desc" and isinstance(keyword.value, ast.Constant):
            about = str(keyword.value.value)
        else:
            notes.drop(f"{place}{target.id}", f"{keyword.arg}= has no equivalent")
    sides[side].append(_Field(target.id, node.annotation if isinstance(node, ast.AnnAssign) else None, about))


def _fields(text: str) -> list[_Field]:
    """Return the fields of one side of a signature: it is read as the parameters of a function."""
    try:
        function = ast.parse(f"def f({text}): pass").body[0]
    except (SyntaxError, ValueError, RecursionError):
        raise NotImportable(f"the fields can't be read: {text.strip()[:60]}") from None
    assert isinstance(function, ast.FunctionDef)  # noqa: S101 - by the form of the text
    return [_Field(each.arg, each.annotation) for each in function.args.args]


def _script(inputs: Sequence[_Field], outputs: Sequence[_Field], instructions: str) -> str:
    if not inputs or not outputs:
        raise NotImportable("a signature needs inputs and outputs")
    names = [", ".join(f"`{each.name}`" for each in side) for side in (inputs, outputs)]
    lines = [instructions or f"Given the fields {names[0]}, produce the fields {names[1]}."]
    lines += [f"{each.name}: {each.about}" for each in (*inputs, *outputs) if each.about]
    parts: list[Text | Reference] = [Text("\n".join(lines))]
    for each in inputs:
        parts += [Text(f"\n\n{each.name}: "), Reference("input", (Key(each.name),))]
    if len(outputs) == 1:
        parts.append(Text(f"\n\n{outputs[0].name}:"))
        return llm_script(
            joined([Template(tuple(parts))]), step=step_name(outputs[0].name), options=_options(outputs[0])
        )
    parts.append(Text(f"\n\nAnswer with a JSON object with the keys {', '.join(each.name for each in outputs)}."))
    schema = {
        "type": "object", "properties": {each.name: _schema(each.type) for each in outputs},
        "required": [each.name for each in outputs], "additionalProperties": False,
    }  # fmt: skip
    return llm_script(joined([Template(tuple(parts))]), options={"schema": schema})


def _options(output: _Field) -> dict[str, Any]:
    """Return the options that give an answer its type."""
    kind = output.type
    if kind is None or (isinstance(kind, ast.Name) and kind.id == "str"):
        return {}
    if isinstance(kind, ast.Name) and kind.id in _TYPES:
        return {"type": Word(_TYPES[kind.id])}
    if (labels := _labels(kind)) is not None:
        return {"type": Choice(tuple(Template((Text(label),)) for label in labels))}
    if isinstance(kind, ast.Name) and kind.id in _LISTS:
        return {"type": Word("list")}
    return {"schema": _schema(kind)}


def _labels(kind: ast.expr) -> list[str] | None:
    if isinstance(kind, ast.Subscript) and ast.unparse(kind.value).endswith("Literal"):
        items = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
        values = [each.value if isinstance(each, ast.Constant) else None for each in items]
        if all(isinstance(value, str) for value in values):
            return [str(value) for value in values]
    return None


def _schema(kind: ast.expr | None) -> dict[str, Any]:
    """Return the JSON Schema of a Python type. Raises ``NotImportable``."""
    if kind is None:
        return {"type": "string"}
    if isinstance(kind, ast.Name) and kind.id in _JSON_TYPES:
        return {"type": _JSON_TYPES[kind.id]}
    if (labels := _labels(kind)) is not None:
        return {"type": "string", "enum": labels}
    if isinstance(kind, ast.Name) and kind.id in ("dict", "Dict"):
        return {"type": "object"}
    if isinstance(kind, ast.Name) and kind.id in _LISTS:
        return {"type": "array"}
    if isinstance(kind, ast.Subscript):
        head = ast.unparse(kind.value).rpartition(".")[2]
        if head in _LISTS:
            return {"type": "array", "items": _schema(kind.slice)}
        if head in ("dict", "Dict") and isinstance(kind.slice, ast.Tuple) and len(kind.slice.elts) == 2:
            return {"type": "object", "additionalProperties": _schema(kind.slice.elts[1])}
        if head == "Optional":
            return {"anyOf": [_schema(kind.slice), {"type": "null"}]}
    if isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr):
        return {"anyOf": [_schema(kind.left), _schema(kind.right)]}
    if isinstance(kind, ast.Constant) and kind.value is None:
        return {"type": "null"}
    raise NotImportable(f"the type {ast.unparse(kind)} has no equivalent in JSON Schema")
