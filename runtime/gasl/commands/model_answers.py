"""Reads a model's answers to PROCESS and ANALYZE. Each row is checked separately; errors are reported, not fixed."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from ....lang.absence import absent_element
from ....lang.answers import ObjectRead, fenced_blocks, read_object
from ....lang.literals import Reading, WrittenFloat, WrittenInt, kind_of, plain_numbers, read, short
from ....lang.trees.gasl import Column

_LONGEST = 1_000_000
"""Maximum characters of an answer that are read."""
_KEYS = ("rows", "answer", "rationale", "evidence")
"""An answer has at least one of these keys. An object without any of them is regarded as an example, not as the answer."""
_MOST_ROWS = 1_000
"""Maximum number of rows per batch; a batch has at most 20 items."""
_MOST_FAULTS = 100
_INT64 = 2**63


@frozen
class Row:
    """A valid row: its fields without the citation, and the indices of the cited items.

    ``numbers`` are the columns of type TEXT whose value was a number; the field has its digits as they were written.
    """

    fields: dict[str, Any]
    cited: tuple[int, ...]
    numbers: tuple[str, ...] = ()


@frozen
class Fault:
    """An error in row number ``row`` (from 1), or in the complete answer (``row`` is None), with the cited items.

    ``rows`` is the number of rows that were dropped because of the error.
    """

    reason: str
    row: int | None = None
    cited: tuple[int, ...] = ()
    rows: int = 1

    def __str__(self) -> str:
        return self.reason if self.row is None else f"row {self.row}: {self.reason}"


@frozen
class Judged:
    """The valid rows and the errors of an answer. ``usable`` is true if the answer could be read."""

    rows: tuple[Row, ...]
    faults: tuple[Fault, ...]
    usable: bool = True


def rows(text: str, known: Mapping[str, int], columns: Sequence[Column], cite: str) -> Judged:
    """Read the rows of a batch's answer. ``known`` maps each valid citation to the index of the cited item."""
    value = _value(text, written=True)
    if isinstance(value, Fault):
        return Judged((), (value,), usable=False)
    listed = value.get("rows") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        return Judged(
            (), (Fault(f'there is no list under "rows": the answer is {kind_of(value)}', rows=0),), usable=False
        )
    fitting: list[Row] = []
    faults: list[Fault] = []
    for number, row in enumerate(listed[:_MOST_ROWS], 1):
        judged = _row(row, known, columns, cite, number)
        if isinstance(judged, Row):
            fitting.append(judged)
        elif len(faults) < _MOST_FAULTS:
            faults.append(judged)
        else:
            left = len(listed) - number + 1
            faults.append(Fault(f"more than {_MOST_FAULTS} rows do not fit: the rest is not read", rows=left))
            break
    else:
        if (left := len(listed) - _MOST_ROWS) > 0:
            faults.append(Fault(f"the first {_MOST_ROWS:,} of {len(listed):,} rows are read", rows=left))
    return Judged(tuple(fitting), tuple(faults))


def _value(text: str, *, written: bool = False) -> Any:
    if len(text) > _LONGEST:
        return Fault(f"the answer is longer than {_LONGEST:,} characters", rows=0)
    found = read(text, written=written)
    if isinstance(found, Reading) and found.how == "json":
        return found.value
    single = read_object(text, _KEYS, written=written)
    if isinstance(single, ObjectRead):
        if single.read_as == "literal":
            return Fault("the answer can't be read: it is not JSON", rows=0)
        return single.value
    reason = single.reason if "{" in text else "it is not JSON"
    if (
        isinstance(found, Reading) and isinstance(found.value, list) and found.how in ("json", "fence")
    ):  # the answer is the list of rows itself
        if found.how == "fence" and sum(1 for _ in fenced_blocks(text)) > 1:
            return Fault("the answer can't be read: there are two answers; answer with one", rows=0)
        return found.value
    return Fault(f"the answer can't be read: {reason}", rows=0)


def _row(row: Any, known: Mapping[str, int], columns: Sequence[Column], cite: str, number: int) -> Row | Fault:
    if not isinstance(row, dict):
        return Fault(f"it is {kind_of(row)}, not an object", number)
    cited, wrong = _cited(row.get(cite), known, cite)
    if wrong:
        return Fault(wrong, number, cited)
    fields = {name: value for name, value in row.items() if name != cite}
    texts = [column.name for column in columns if column.type == "TEXT"]
    numbers = {name: each.written for name in texts if isinstance(each := fields.get(name), WrittenInt | WrittenFloat)}
    fields = plain_numbers(fields) | numbers
    wrong = _columns(fields, columns) if columns else "" if fields else "it has no field but the references"
    for name, value in fields.items():
        wrong = wrong or _unkeepable(value, name) or _unkeepable(name, "a name")
    if wrong:
        return Fault(wrong, number, cited)
    if columns:
        fields = {column.name: fields[column.name] for column in columns}
        floats = [column.name for column in columns if column.type == "FLOAT" and fields[column.name] is not None]
        fields |= {name: float(fields[name]) for name in floats}
    return Row(fields, cited, tuple(numbers))


def _cited(given: Any, known: Mapping[str, int], cite: str) -> tuple[tuple[int, ...], str]:
    if not isinstance(given, list) or not given:
        return (), f'"{cite}" must list at least one reference'
    found: dict[int, None] = {}
    for each in given:
        name = str(each) if isinstance(each, int) and not isinstance(each, bool) else each
        if not isinstance(name, str) or name not in known:
            found_text = short(each) if isinstance(each, str) else kind_of(each)
            return tuple(found), f"{found_text} is none of the references that were shown"
        found[known[name]] = None
    return tuple(found), ""


def _columns(fields: Mapping[str, Any], columns: Sequence[Column]) -> str:
    """Return the first error in the fields of a row; "" if there is no error. Null is valid for every type."""
    for column in columns:
        if column.name not in fields:
            other = next((name for name in fields if name.casefold() == column.name.casefold()), "")
            return f"{short(column.name)} is missing" + (f"; the row has {short(other)}" if other else "")
        value = fields[column.name]
        if value is not None and not _is(value, column):
            found_text = (
                short(value)
                if isinstance(value, str)
                else str(value)[:40]
                if isinstance(value, int | float)
                else kind_of(value)
            )
            return f"{short(column.name)} must be {column.type}, not {found_text}"
        if isinstance(value, list) and len(value) == 1 and (absent := absent_element(value)):
            return f"{short(column.name)} lists only {absent}; a list without elements is []"
    names = {column.name for column in columns}
    for name in fields:
        if name not in names:
            return f"{short(name)} was not asked for"
    return ""


def _is(value: Any, column: Column) -> bool:
    if column.type == "TEXT":
        return isinstance(value, str)
    if column.type == "BOOL":
        return isinstance(value, bool)
    if column.type == "LIST":
        return isinstance(value, list)
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (column.type == "FLOAT" and isinstance(value, float))


def _unkeepable(value: Any, name: str) -> str:
    """Return the reason why the state can't store ``value`` (integer over 64 bits, infinity, lone surrogate ...), or ""."""
    level: list[Any] = [value]
    while level:
        following: list[Any] = []
        for each in level:
            if isinstance(each, str):
                try:
                    each.encode()
                except UnicodeEncodeError:
                    return f"{short(name)} has half of a surrogate pair"
            elif isinstance(each, int) and not -_INT64 <= each < _INT64:
                return f"{short(name)} has a number of more than 64 bits"
            elif isinstance(each, dict):
                following += each.keys()
                following += each.values()
            elif isinstance(each, list):
                following += each
        level = following
    return ""


def analysis(text: str, known: Mapping[str, int]) -> tuple[dict[str, Any] | None, tuple[int, ...], tuple[str, ...]]:
    """Return ANALYZE's answer (None if it is invalid), the cited indices, and the errors.

    An answer remains valid if it also cites parts that were not shown; the errors include these wrong citations.
    """
    value = _value(text)
    if isinstance(value, Fault):
        return None, (), (value.reason,)
    if not isinstance(value, dict):
        return None, (), (f"the answer is {kind_of(value)}, not an object",)
    for name in ("answer", "rationale"):
        if not isinstance(value.get(name), str):
            return None, (), (f'"{name}" must be a text, not {kind_of(value.get(name))}',)
        if wrong := _unkeepable(value[name], name):
            return None, (), (wrong,)
    evidence = value.get("evidence")
    if not isinstance(evidence, list):
        return None, (), (f'"evidence" must be a list, not {kind_of(evidence)}',)
    found: dict[int, None] = {}
    faults: list[str] = []
    for each in evidence[:_MOST_ROWS]:
        index, wrong = _cited([each], known, "evidence")
        found.update(dict.fromkeys(index))
        if wrong and len(faults) < _MOST_FAULTS:
            faults.append(wrong)
    return {"answer": value["answer"], "rationale": value["rationale"]}, tuple(found), tuple(dict.fromkeys(faults))
