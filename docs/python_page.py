"""The page of the public Python modules, generated from their signatures, docstrings and examples."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = ("lwt", "gasl", "seed", "expr", "answers", "planner", "ask", "evals", "traces")
EXAMPLES = Path(__file__).parent / "examples" / "python.py"
_WIDTH = 100
_RAISES = re.compile(r"(?:^|(?<=[.)] )|(?<=\n))(?:Raises|Never raises)\b.*?\.(?=\s|$)", re.S)


def page(made: str) -> str:
    """Return the page; ``made`` is the remark that names its generator."""
    shown = examples()
    lines = [
        "# Python\n", made,
        "`from knotwork import lwt` imports the module of prompt scripts. `gasl`, `seed`, `expr`, `answers`, `planner`, `evals`",
        "and `traces` are imported in the same way.",
        "`ask`, `rank` and `generate_answer` can be imported from `knotwork` itself, too. An async function `x` has a synchronous twin",
        "`x_sync` with the same arguments, which raises `RuntimeError` inside a running event loop. All errors of knotwork are",
        "`knotwork.KnotworkError`, with `message`, `hint` and `diagnostics`. The examples run in the root of the repository.\n",
    ]  # fmt: skip
    for name in MODULES:
        module = import_module(f"knotwork.runtime.api.{name}")
        headings = {each: _heading(name, each, module) for each in sorted(module.__all__) if not _main(each, module)}
        links = ", ".join(f"[{each}](#{_anchor(heading)})" for each, heading in headings.items())
        lines += [f"## knotwork.{name}\n", _prose(module.__doc__), f"\n{links}\n"]
        for each, heading in headings.items():
            lines += [f"### {heading}\n", *_entry(name, each, module, shown)]
    return "\n".join(lines).rstrip() + "\n"


def examples() -> dict[str, str]:
    """Return the example of each function, such as "lwt.run"."""
    texts = re.split(r"^# %% (.*)\n", EXAMPLES.read_text(encoding="utf-8"), flags=re.M)[1:]
    return {
        name: text.strip() for names, text in zip(texts[::2], texts[1::2], strict=True) for name in names.split(", ")
    }


def functions() -> Iterator[tuple[str, str]]:
    """Yield each documented function, such as "lwt.run", with the errors that its docstring names. Twins are left out."""
    for name in MODULES:
        module = import_module(f"knotwork.runtime.api.{name}")
        for each in module.__all__:
            value = getattr(module, each)
            if inspect.isfunction(value) and not _main(each, module):
                yield f"{name}.{each}", " ".join(_RAISES.findall(_prose(value.__doc__)))


def _main(each: str, module: ModuleType) -> str:
    """Return the name of the async function that ``each`` is the synchronous twin of, or ""."""
    main = each.removesuffix("_sync") if each.endswith("_sync") else f"a{each}"
    return main if main in module.__all__ else ""


def _twin(each: str, module: ModuleType) -> str:
    return next((other for other in module.__all__ if _main(other, module) == each), "")


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _heading(name: str, each: str, module: ModuleType) -> str:
    if inspect.isclass(getattr(module, each)):
        return f"class {name}.{each}"
    twin = _twin(each, module)
    return f"{name}.{each}" + (f", {name}.{twin}" if twin else "")


def _entry(name: str, each: str, module: ModuleType, shown: dict[str, str]) -> Iterator[str]:
    value = getattr(module, each)
    text = _prose(value.__doc__)
    if inspect.isclass(value):
        yield f"{text}\n"
        methods = [
            f"- `{'await ' if inspect.iscoroutinefunction(method) else ''}{title}{_arguments(method)}`: {_first(method.__doc__)}"
            for title, method in vars(value).items()
            if not title.startswith("_") and inspect.isfunction(method) and method.__doc__
        ]
        if methods:
            yield "\n".join(methods) + "\n"
        return
    is_generator = inspect.isasyncgenfunction(value)
    call = "async for ... in " if is_generator else "await " if inspect.iscoroutinefunction(value) else ""
    yield f"```text\n{call}{_call(f'{name}.{each}', value)}\n```\n"
    # The sentences about errors get a paragraph of their own.
    yield (
        re.sub(r"\n{3,}", "\n\n", re.sub(rf"(?:{_RAISES.pattern}) ?", "", text, flags=re.S))
        .replace(" \n", "\n")
        .strip()
        + "\n"
    )
    if options := _options(value):
        yield "Options: " + ", ".join(f"`{key}: {kind}`" for key, kind in options) + ".\n"
    if raised := _RAISES.findall(text):
        yield " ".join(raised).replace("Raises", "**Raises**", 1) + "\n"
    if twin := _twin(each, module):
        yield _prose(getattr(module, twin).__doc__) + "\n"
    yield f"```python\n{shown[f'{name}.{each}']}\n```\n"


def _definition(value: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return the definition of a function, its annotations without quotes."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        raise TypeError(f"{value} is not a function")
    arguments = definition.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = _unquoted(each.annotation)
    definition.returns = _unquoted(definition.returns)
    return definition


def _unquoted(annotation: ast.expr | None) -> ast.expr | None:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def _arguments(value: Any) -> str:
    arguments = _definition(value).args
    arguments.args = [each for each in arguments.args if each.arg not in ("self", "cls")]
    return f"({ast.unparse(arguments)})"


def _call(title: str, value: Any) -> str:
    definition = _definition(value)
    result = f" -> {ast.unparse(definition.returns)}" if definition.returns is not None else ""
    line = f"{title}({ast.unparse(definition.args)}){result}"
    if len(line) <= _WIDTH:
        return line
    arguments = definition.args
    parts = [*arguments.posonlyargs, *arguments.args]
    required = len(parts) - len(arguments.defaults)
    lines = [
        ast.unparse(part) + (f" = {ast.unparse(arguments.defaults[place - required])}" if place >= required else "")
        for place, part in enumerate(parts)
    ]
    if arguments.kwonlyargs:
        lines.append("*")
    lines += [
        ast.unparse(part) + ("" if default is None else f" = {ast.unparse(default)}")
        for part, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg is not None:
        lines.append(f"**{arguments.kwarg.arg}")
    body = "".join(f"    {each},\n" for each in lines)
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
