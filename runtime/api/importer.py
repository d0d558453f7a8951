"""``lwt.import_file``: prompts of other tools as scripts and test cases."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ...lang.errors import KnotworkError

if TYPE_CHECKING:
    from ...lang.documents.foreign import ImportedScript, Notes

_LARGEST = 16 << 20
"""Maximum size of a file in bytes."""
FORMATS = "LangChain prompts (JSON, YAML), promptfoo configurations (JSON, YAML) and DSPy signatures (text, Python)"


class ImportFailed(KnotworkError, ValueError):
    """Raised if a file can't be imported. ``hint`` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)


@frozen
class Imported:
    """The scripts and test cases of a file of another tool.

    ``format`` is langchain, promptfoo or dspy. ``left_out`` has a sentence for each part that could not be imported; ``hints`` has advice
    on the result.
    """

    format: str
    scripts: "tuple[ImportedScript, ...]"
    left_out: tuple[str, ...] = ()
    hints: tuple[str, ...] = field(default=())

    def files(self) -> dict[str, str]:
        """Return the files: ``NAME.lwt`` with each script, and ``NAME.cases.jsonl`` with its test cases."""
        found = {}
        for script in self.scripts:
            found[f"{script.name}.lwt"] = script.text
            if script.cases:
                lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in script.cases]
                found[f"{script.name}.cases.jsonl"] = "".join(lines)
        return found

    def write(self, folder: str | Path, *, force: bool = False) -> list[Path]:
        """Write the files into a folder, which is created, and return their paths. An existing file is only replaced with ``force``.

        Raises ``FileExistsError``, before any file is written, and ``OSError``.
        """
        from .files import named_folder, replace_file

        paths = {Path(folder) / name: text for name, text in self.files().items()}
        for path in paths:
            if path.exists() and not force:
                raise FileExistsError(17, "the file exists", str(path))
        named_folder(Path(folder))
        for path, text in paths.items():
            replace_file(path, text)
        return list(paths)


def import_file(path: str | Path, *, name: str | None = None) -> Imported:
    """Read a file of another tool, and return its prompts as scripts: ``lwt.import_file("promptfooconfig.yaml").write("scripts")``.

    The formats are LangChain prompts (``_type`` prompt, few_shot and chat, and objects written by ``dumps``), promptfoo configurations,
    and DSPy signatures (``question -> answer: float``, or Python classes, which are not run). YAML needs the extra ``yaml``. ``name`` is
    the name of the scripts (default: that of the file). Variables become keys of the script's input.

    Nothing is left out in silence: see ``Imported.left_out``. Raises ``ImportFailed`` for a file of an unknown format or without a
    usable prompt, and ``OSError``.
    """
    from ...lang.documents.foreign import Notes, NotImportable, dspy, langchain, promptfoo, step_name

    path = Path(path)
    notes, own = Notes(), name or step_name(path.name.partition(".")[0], "imported")
    text = _text(path)
    document: Any = _value(path, text) if path.suffix.lower() in (".json", ".yaml", ".yml") else None
    load = _Loader(path.parent)
    try:
        if langchain.is_langchain(document):
            form, scripts = "langchain", langchain.read_langchain(document, own, notes, load)
        elif promptfoo.is_promptfoo(document):
            form, scripts = "promptfoo", promptfoo.read_promptfoo(document, own, notes, load)
        elif document is None and dspy.is_dspy(text):
            form, scripts = "dspy", dspy.read_dspy(text, own, notes)
        else:
            raise ImportFailed(f"{path} has no known format", f"the formats are {FORMATS}")
    except (NotImportable, OSError) as error:
        raise ImportFailed(f"{path} can't be imported: {error}", _listed(notes)) from None
    if not scripts:
        raise ImportFailed(f"{path} has no prompt that can be imported", _listed(notes))
    return Imported(form, scripts, tuple(notes.left_out), tuple(dict.fromkeys(notes.hints)))


def _listed(notes: "Notes") -> str:
    return "\n".join(notes.left_out)


def _text(path: Path) -> str:
    if path.stat().st_size > _LARGEST:
        raise ImportFailed(f"{path} has more than {_LARGEST >> 20} MB")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ImportFailed(f"{path} is not UTF-8", "save it as UTF-8") from None


def _value(path: Path, text: str) -> Any:
    """Return the value of a JSON or YAML file. Raises ``ImportFailed``."""
    try:
        if path.suffix.lower() == ".json":
            return json.loads(text)
        yaml = _yaml(path)
        try:
            return _without_dates(
                yaml.load(text, Loader=yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader)
            )
        except yaml.YAMLError as error:
            raise ImportFailed(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, ImportFailed):
            raise
        raise ImportFailed(f"{path} is not JSON: {error}") from None


def _yaml(path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise ImportFailed(
            f"reading {path} needs the extra 'yaml', which is not installed", "pip install 'knotwork[yaml]'"
        ) from None
    return yaml


def _without_dates(value: Any) -> Any:
    """Return a value of YAML as JSON: dates become texts, and keys that are not texts become texts."""
    if isinstance(value, Mapping):
        return {str(key): _without_dates(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_dates(each) for each in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


@frozen
class _Loader:
    """Reads files that a document names, relative to its folder; files outside of the folder are refused."""

    folder: Path

    def __call__(self, name: str) -> Any:
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise ImportFailed(f"{name} is outside of the folder of the file")
        text = _text(path)
        return _value(path, text) if path.suffix.lower() in (".json", ".yaml", ".yml") else text
