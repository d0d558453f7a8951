"""Checks all files of a state (bytes, hashes, consistency between files) and reports which files are damaged."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import orjson
from attrs import define, field, frozen

from ..state import StoreError
from .journal_records import advanced
from .log.durable import Damage, Log, VerifyReport, verify
from .log.files import reason
from .snapshot import Entries, Moment
from .state_object import CHECK, NAME, as_json, from_json, from_text, hash_of

Nested = Callable[[Path], Iterator[tuple[Path, str | None]]]
"""Checks the files of a subfolder. Yields each path with its fault: "" for an undamaged file, None for an unchecked file."""

_HASH = re.compile("[0-9a-f]{64}")
_LEFT = re.compile(r"torn-\d+-\d+(-\d+)?|damaged-.+")
_SIGNS = tuple(f'"{key}"'.encode() for key in ("version", "variables", "history", "replay", CHECK))


@frozen
class AuditedFile:
    """A checked file: its path in the directory, its size, and the reason why it is damaged or was not checked."""

    name: str
    size: int
    status: Literal["whole", "damaged", "not checked"]
    why: str = ""


@define
class Audit:
    """The result of an audit. ``hash`` and ``steps`` are None if the state can't be read; ``report`` is None for a single file."""

    report: VerifyReport | None = None
    hash: str | None = None
    steps: int | None = None
    damage: list[Damage] = field(factory=list)
    notices: list[str] = field(factory=list)
    files: list[AuditedFile] = field(factory=list)

    @property
    def ok(self) -> bool:
        """Whether no checked file is damaged."""
        return not self.damage


def audit(path: Path, nested: Nested) -> Audit:
    """Audit a directory or an exported state. Raises ``StoreError`` only if there is nothing to check."""
    found = Audit()
    if path.is_dir():
        _directory(path, found, nested)
        return found
    try:
        text = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} can't be read: {reason(error)}") from error
    moment = _audit_export(path.name, text, found)
    _add_file(found, path.name, len(text))
    if moment is not None:
        found.hash, found.steps = moment.root.digest.hex(), len(moment.history)
    return found


def _directory(path: Path, found: Audit, nested: Nested) -> None:
    report = found.report = verify(path)
    found.damage += report.damage
    if (torn := report.torn) is not None:
        found.notices.append(
            f"{torn.file} ends at byte {torn.position} with an incomplete record ({torn.reason}): a commit in progress, or one "
            "that a crash interrupted; it is not part of the state"
        )
    if report.seal is None and not report.damage:
        found.notices.append(
            "it was never closed cleanly: damage at the end can't be distinguished from the effect of a crash"
        )
    elif not report.closed and not report.damage:
        found.notices.append("it was not closed cleanly after the last commits, or a process has it open")
    commits = _Commits(path, found) if report.ok else None
    for name in sorted(os.listdir(path)):
        inner = path / name
        if inner.is_dir():
            _folder(path, inner, found, nested)
        else:
            _file(inner, found, report, commits)


def _file(path: Path, found: Audit, report: VerifyReport, commits: "_Commits | None") -> None:
    name = path.name
    try:
        size = path.lstat().st_size
        if name in report.counts:
            _add_file(found, name, size)
        elif name == "LOCK":
            found.files.append(
                AuditedFile(
                    name, size, "not checked", "it identifies the process that holds, or last held, the write lock"
                )
            )
        elif name in report.left_over or _LEFT.fullmatch(name) or name.endswith(".new"):
            found.files.append(AuditedFile(name, size, "not checked", "left over and unused"))
        elif name == NAME:
            text = path.read_bytes()
            _statefile(text, found, report, commits)
            _add_file(found, name, size)
        elif path.suffix == ".json" and sum(sign in path.read_bytes() for sign in _SIGNS) > len(_SIGNS) // 2:
            text = path.read_bytes()  # the file is an exported state, which may be damaged
            _audit_export(name, text, found)
            _add_file(found, name, size)
        else:
            found.files.append(AuditedFile(name, size, "not checked", "it does not belong to the state"))
    except OSError as error:
        found.damage.append(Damage(name, 0, f"it can't be read: {reason(error)}"))
        found.files.append(AuditedFile(name, 0, "damaged", f"it can't be read: {reason(error)}"))


def _folder(path: Path, inner: Path, found: Audit, nested: Nested) -> None:
    for file, wrong in nested(inner):
        name = file.relative_to(path).as_posix()
        if wrong is None:
            found.files.append(AuditedFile(name, file.lstat().st_size, "not checked", "it has no checksum"))
            continue
        if wrong:
            found.damage.append(Damage(name, 0, wrong))
        _add_file(found, name, file.lstat().st_size)


def _add_file(found: Audit, name: str, size: int) -> None:
    why = next((each.reason for each in found.damage if each.file == name), "")
    found.files.append(AuditedFile(name, size, "damaged" if why else "whole", why))


def _audit_export(name: str, text: bytes, found: Audit) -> Moment | None:
    """Audit an exported state: its form, its checksum, and whether the hash of its content is the last hash in its history."""
    try:
        moment = from_text(text, name)
    except StoreError as error:
        found.damage.append(Damage(name, 0, error.message.removeprefix(f"{name} ")))
        return None
    checked = CHECK in orjson.loads(text)
    said = _last_hash(moment)
    own = moment.root.digest.hex()
    if said is not None and said[1] != own:
        told = f"its history records the hash {said[1][:12]}… after step {said[0]}, but the hash of its content is {own[:12]}…"
        if checked:
            found.notices.append(f"{name}: {told}: it was changed without commands before it was written")
        else:
            found.damage.append(Damage(name, 0, f"{told}: it was changed since it was written"))
    if not checked:
        rest = "only the hash in its history was checked" if said is not None else "only its form was checked"
        found.notices.append(f'{name} has no "{CHECK}": {rest}')
    return moment


def _last_hash(moment: Moment) -> tuple[Any, str] | None:
    """Return the last step and hash in the state's history."""
    for entry in reversed(Entries(moment.history)):
        said = entry.get("state")
        if isinstance(said, str) and _HASH.fullmatch(said) and not entry.get("rolled_back"):
            return entry.get("step"), said
    return None


def _statefile(text: bytes, found: Audit, report: VerifyReport, commits: "_Commits | None") -> None:
    """Audit ``state.json``, which contains the state after one of the commits."""
    sealed = report.seal.beside.get(NAME) if report.seal is not None else None
    if sealed == hash_of(text):
        return
    told = "it differs from what was written when the state was closed" if sealed is not None and report.closed else ""
    before = len(found.damage)
    moment = _audit_export(NAME, text, found)
    if moment is None or len(found.damage) > before:
        return
    if commits is not None and (why := commits.against(moment, orjson.loads(text))):
        found.damage.append(Damage(NAME, 0, f"{told}: {why}" if told else why))
    elif commits is None and told:
        found.damage.append(Damage(NAME, 0, told))


class _Commits:
    """The states in a directory's journal, one after each record. The hash of each state is compared with the hash in its record."""

    def __init__(self, path: Path, found: Audit) -> None:
        self._path = path
        self._found = found
        last = Moment()
        try:
            for at, (moment, said) in enumerate(self._walk()):
                last = moment
                own = moment.root.digest.hex()
                if said is not None and said != own:
                    why = f"record {at} has the hash {str(said)[:12]}… for the resulting state, but the state has {own[:12]}…"
                    found.damage.append(Damage(path.name, 0, why))
        except StoreError as error:
            found.damage.append(Damage(path.name, 0, error.message))
            return
        found.hash, found.steps = last.root.digest.hex(), len(last.history)

    def _walk(self) -> Iterator[tuple[Moment, Any]]:
        log, kept = Log.open(self._path, read_only=True)
        try:
            snapshot: Mapping[str, Any] = kept.snapshot or {}
            moment = from_json(snapshot["state"]) if snapshot else Moment()
            yield moment, snapshot.get("hash")
            for plain in kept.records:
                moment = advanced(moment, plain)
                yield moment, plain.get("hash")
        finally:
            log.close()

    def against(self, moment: Moment, told: Mapping[str, Any]) -> str:
        """Return the reason why a ``state.json`` matches no commit; "" if it matches a commit or is older than the journal."""
        first = ""
        near = False
        for each, _ in self._walk():
            first = first or each.about.updated_at
            if each.about.updated_at == moment.about.updated_at and len(each.history) == len(moment.history):
                near = True
                expected = as_json(each)
                if expected == {name: part for name, part in told.items() if name != CHECK}:
                    return ""
        if near:
            return "it differs from the journal's state at that commit"
        if moment.about.updated_at >= first:
            return f"the journal has no commit from {moment.about.updated_at}"
        self._found.notices.append(
            f"{NAME} (of {moment.about.updated_at}) is older than the journal; its own checksum is correct"
        )
        return ""
