"""The page of the public Python modules, made from their signatures and docstrings."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = ("lwt", "gasl", "seed", "expr", "answers", "planner", "ask")
_WIDTH = 100


def page(made: str) -> str:
    """Return the page; ``made`` is the remark that says where it comes from."""
    modules = [import_module(f"knotwork.runtime.api.{name}") for name in MODULES]
    lines = [
        "# Python\n", made,
        "`from knotwork import lwt` gives the module of prompt scripts; `gasl`, `seed`, `expr`, `answers` and `planner` likewise.",
        "The functions `ask`, `rank` and `generate_answer` are in `knotwork` itself too. A function `x` that is async has a twin `x_sync`",
        "for code that is not. All public errors are `knotwork.KnotworkError`, with `message`, `hint` and `diagnostics`.\n",
    ]  # fmt: skip
    for name, module in zip(MODULES, modules, strict=True):
        title = "knotwork.ask" if name == "ask" else f"knotwork.{name}"
        names = ", ".join(f"[{each}](#{_anchor(_heading(name, each, module))})" for each in sorted(module.__all__))
        lines += [f"## {title}\n", _prose(module.__doc__), f"\n{names}\n"]
        for each in sorted(module.__all__):
            lines += _entry(name, each, module)
    return "\n".join(lines).rstrip() + "\n"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _heading(name: str, each: str, module: ModuleType) -> str:
    return f"{'class ' if inspect.isclass(getattr(module, each)) else ''}{name}.{each}"


def _entry(name: str, each: str, module: ModuleType) -> Iterator[str]:
    value = getattr(module, each)
    yield f"### {_heading(name, each, module)}\n"
    if inspect.isclass(value):
        yield f"{_prose(value.__doc__)}\n"
        methods = [
            f"- `{'await ' if inspect.iscoroutinefunction(method) else ''}{title}{_arguments(method)}`: {_first(method.__doc__)}"
            for title, method in vars(value).items()
            if not title.startswith("_") and inspect.isfunction(method) and method.__doc__
        ]
        if methods:
            yield "\n".join(methods) + "\n"
        return
    if not callable(value):
        yield f"A `{type(value).__name__}`.\n"
        return
    awaited = (
        "await "
        if inspect.iscoroutinefunction(value)
        else "async for ... in "
        if inspect.isasyncgenfunction(value)
        else ""
    )
    yield f"```text\n{awaited}{_call(f'{name}.{each}', value)}\n```\n"
    yield f"{_prose(value.__doc__)}\n"
    if options := _options(value):
        yield "Options: " + ", ".join(f"`{key}: {kind}`" for key, kind in options) + ".\n"


def _definition(value: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return a function as it is written, its annotations without the quotes that keep them from being evaluated."""
    made = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    if not isinstance(made, ast.FunctionDef | ast.AsyncFunctionDef):
        raise TypeError(f"{value} is not a function")
    arguments = made.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = _plain(each.annotation)
    made.returns = _plain(made.returns)
    return made


def _plain(annotation: ast.expr | None) -> ast.expr | None:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def _arguments(value: Any) -> str:
    arguments = _definition(value).args
    arguments.args = [each for each in arguments.args if each.arg not in ("self", "cls")]
    return f"({ast.unparse(arguments)})"


def _call(title: str, value: Any) -> str:
    made = _definition(value)
    result = f" -> {ast.unparse(made.returns)}" if made.returns is not None else ""
    line = f"{title}({ast.unparse(made.args)}){result}"
    if len(line) <= _WIDTH:
        return line
    arguments = made.args
    parts = [*arguments.posonlyargs, *arguments.args]
    without = len(parts) - len(arguments.defaults)
    told = [
        ast.unparse(part) + (f" = {ast.unparse(arguments.defaults[place - without])}" if place >= without else "")
        for place, part in enumerate(parts)
    ]
    if arguments.kwonlyargs:
        told.append("*")
    told += [
        ast.unparse(part) + ("" if default is None else f" = {ast.unparse(default)}")
        for part, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg is not None:
        told.append(f"**{arguments.kwarg.arg}")
    body = "".join(f"    {each},\n" for each in told)
    return f"{title}(\n{body}){result}"


def _options(value: Any) -> list[tuple[str, str]]:
    """Return the keys of the typed dict that a function takes as ``**options``, with their types."""
    kwarg = _definition(value).args.kwarg
    if (
        kwarg is None
        or kwarg.annotation is None
        or (found := re.search(r"Unpack\[(\w+)\]", ast.unparse(kwarg.annotation))) is None
    ):
        return []
    tree = ast.parse(Path(inspect.getfile(value)).read_text(encoding="utf-8"))
    typed = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == found[1])
    return [
        (ast.unparse(each.target), ast.unparse(each.annotation))
        for each in typed.body
        if isinstance(each, ast.AnnAssign)
    ]


def _first(text: str | None) -> str:
    return _prose((text or "").strip().split("\n\n")[0]).replace("\n", " ")


def _prose(text: str | None) -> str:
    """Return a docstring as Markdown: its code in single backticks, its literal blocks as they are."""
    return inspect.cleandoc(text or "").replace("``", "`")
