"""A disk for the state's log that notes every operation, can fail or be killed at any of them, and can lose its power.

``Disk`` does what it is asked on real files, except syncing, and keeps the trace. ``Model`` replays a trace and says what a power cut
may leave: of a file what was synced, and of the rest anything: nothing, all, a beginning, torn sectors, in any order; of a
directory the names that were synced, and any of the changes since.
"""

import errno
import os
import random
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from knotwork.adapters.state_json.log.files import Files

SECTOR = 512

Op = tuple[Any, ...]
State = dict[str, bytes | None]
"""What lies on a disk: a path below its root to a file's bytes, None for a directory."""


class Killed(BaseException):
    """The process is gone, in the middle of what it did."""


class Unsynced(Files):
    """Real files that don't wait for the disk: for tests that open thousands of stores."""

    def sync(self, file: int) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        pass


class Disk(Files):
    """Files below ``root`` that are traced. ``fault``: the number of the operation that fails, and how.

    How: "kill" (before it), "error" (EIO), "full" (ENOSPC), "short" (a write that takes half), "always" (EIO from there on).
    What lies below ``root`` already counts as synced.
    """

    def __init__(self, root: Path, fault: tuple[int, str] | None = None) -> None:
        self.root = root
        self.trace: list[Op] = []
        self.done = 0
        self.killed = False
        self.hit = ""
        self.fault = fault
        self._inodes: dict[str, int] = {}
        self._open: dict[int, int] = {}
        self._next = 0
        for path in sorted(root.rglob("*")):
            self._adopt(path)

    def restart(self) -> None:
        """Begin a new process on the same disk: what the old one had open is closed."""
        for file in [*self._open]:
            self.close(file)
        self.killed = False

    def mark(self, **what: Any) -> None:
        """Put a remark into the trace."""
        self.trace.append(("mark", what))

    def make_directory(self, path: Path) -> None:
        self._before("mkdir")
        super().make_directory(path)
        self.trace.append(("mkdir", self._name(path)))

    def create(self, path: Path) -> int:
        return self._created(path, super().create)

    def create_new(self, path: Path) -> int:
        return self._created(path, super().create_new)

    def open_or_create(self, path: Path) -> int:
        return self._created(path, super().open_or_create, empties=False)

    def open(self, path: Path) -> int:
        self._before("open")
        file = super().open(path)
        self._open[file] = self._inodes[self._name(path)]
        return file

    def write(self, file: int, data: bytes, at: int) -> int:
        how = self._before("write")
        if how == "short":
            data = data[: len(data) // 2]
        done = super().write(file, data, at)
        self.trace.append(("write", self._open[file], at, bytes(data)))
        return done

    def truncate(self, file: int, size: int) -> None:
        self._before("truncate")
        super().truncate(file, size)
        self.trace.append(("truncate", self._open[file], size))

    def sync(self, file: int) -> None:
        site = _caller()
        try:
            self._before("sync")
        except OSError:
            self.trace.append(("failed sync", self._open[file]))
            raise
        self.trace.append(("sync", self._open[file], site))

    def sync_directory(self, path: Path) -> None:
        if not path.is_relative_to(self.root):
            return
        site = _caller()
        self._before("sync directory")
        self.trace.append(("sync directory", self._name(path), site))

    def rename(self, old: Path, new: Path) -> None:
        self._before("rename")
        super().rename(old, new)
        self._inodes[self._name(new)] = self._inodes.pop(self._name(old))
        self.trace.append(("rename", self._name(old), self._name(new)))

    def unlink(self, path: Path) -> None:
        self._before("unlink")
        super().unlink(path)
        del self._inodes[self._name(path)]
        self.trace.append(("unlink", self._name(path)))

    def close(self, file: int) -> None:
        if self._open.pop(file, None) is not None:
            super().close(file)

    def _created(self, path: Path, make: Any, empties: bool = True) -> int:
        self._before("create")
        file: int = make(path)
        name = self._name(path)
        if name in self._inodes:
            if empties:
                self.trace.append(("truncate", self._inodes[name], 0))
        else:
            self._inodes[name] = self._next
            self._next += 1
            self.trace.append(("create", name, self._inodes[name]))
        self._open[file] = self._inodes[name]
        return file

    def _adopt(self, path: Path) -> None:
        name, parent = self._name(path), self._name(path.parent)
        if path.is_dir():
            self.trace += [("mkdir", name), ("sync directory", parent, "")]
        else:
            inode = self._inodes[name] = self._next
            self._next += 1
            self.trace += [("create", name, inode), ("write", inode, 0, path.read_bytes())]
            self.trace += [("sync", inode, ""), ("sync directory", parent, "")]

    def _before(self, kind: str) -> str:
        if self.killed:
            raise Killed
        self.done += 1
        if self.fault is None:
            return ""
        number, how = self.fault
        if self.done != number and not (how == "always" and self.done > number):
            return ""
        self.hit = kind
        if how == "kill":
            self.killed = True
            raise Killed
        if how == "short":
            return how
        raise OSError(errno.ENOSPC if how == "full" else errno.EIO, os.strerror(errno.EIO))

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.root)) if path != self.root else ""


def _caller() -> str:
    frame = sys._getframe(2)
    return f"{frame.f_code.co_name}:{frame.f_lineno}"


def sync_sites(trace: list[Op]) -> set[str]:
    """Return the places in the program that asked for a sync."""
    return {op[2] for op in trace if op[0] in ("sync", "sync directory") and op[2]}


@dataclass
class _File:
    durable: bytes = b""
    pending: list[tuple[str, int, bytes]] = field(default_factory=list)
    lost: list[tuple[int, bytes]] = field(
        default_factory=list
    )  # a sync failed: in memory, clean, perhaps not on the disk

    def write(self, at: int, data: bytes) -> None:
        self._forget(at, at + len(data))
        self.pending.append(("write", at, data))

    def truncate(self, size: int) -> None:
        self._forget(size, sys.maxsize)
        self.pending.append(("truncate", size, b""))

    def sync(self) -> None:
        for op in self.pending:
            self.durable = _applied(self.durable, op)
        self.pending.clear()

    def fail(self) -> None:
        for kind, at, data in self.pending:
            if kind == "truncate":  # a length is the inode's, which the next sync brings along
                self.durable = _applied(self.durable, (kind, at, data))
            else:
                self.lost.append((at, data))
        self.pending.clear()

    def _forget(self, begin: int, end: int) -> None:
        parts = []
        for at, data in self.lost:
            parts.append((at, data[: max(0, begin - at)]))
            parts.append((max(at, end), data[max(0, end - at) :]))
        self.lost = [(at, data) for at, data in parts if data]


@dataclass
class _Directory:
    durable: dict[str, int | None] = field(default_factory=dict)
    pending: list[dict[str, int | str | None]] = field(default_factory=list)

    def entries(self, chosen: Collection[int]) -> dict[str, int | None]:
        found = dict(self.durable)
        for index in sorted(chosen):
            for name, target in self.pending[index].items():
                if target == "gone":
                    found.pop(name, None)
                else:
                    found[name] = target  # type: ignore[assignment]
        return found


def _applied(content: bytes, op: tuple[str, int, bytes]) -> bytes:
    kind, at, data = op
    content = content.ljust(at, b"\0")
    return content[:at] if kind == "truncate" else content[:at] + data + content[at + len(data) :]


class Model:
    """What is on the disk for sure and what may be, after a beginning of a trace."""

    def __init__(self) -> None:
        self.files: dict[int, _File] = {}
        self.directories: dict[str, _Directory] = {"": _Directory()}
        self._names: dict[str, int | None] = {}

    def apply(self, op: Op) -> None:
        """Do one operation of a trace."""
        match op:
            case ("mkdir", path):
                self.directories[path] = _Directory()
                self._change({path: None})
            case ("create", path, inode):
                self.files[inode] = _File()
                self._change({path: inode})
            case ("write", inode, at, data):
                self.files[inode].write(at, data)
            case ("truncate", inode, size):
                self.files[inode].truncate(size)
            case ("sync", inode, _):
                self.files[inode].sync()
            case ("failed sync", inode):
                self.files[inode].fail()
            case ("sync directory", path, _):
                directory = self.directories.get(path)
                if directory is not None:
                    directory.durable = directory.entries(range(len(directory.pending)))
                    directory.pending.clear()
            case ("rename", old, new):
                self._change({old: "gone", new: self._names[old]})
            case ("unlink", path):
                self._change({path: "gone"})

    def _change(self, changes: dict[str, int | str | None]) -> None:
        for path, target in changes.items():
            self._names[path] = target  # type: ignore[assignment]
        (parent,) = {os.path.dirname(path) for path in changes}
        self.directories[parent].pending.append({os.path.basename(path): target for path, target in changes.items()})

    def after_power_cut(self, chance: random.Random, more: int) -> Iterator[State]:
        """Yield states that a power cut may leave: the four extremes, and ``more`` by chance."""
        for files in ("none", "all"):
            for names in ("none", "all"):
                yield self._state(chance, files, names)
        for _ in range(more):
            yield self._state(chance, chance.choice(_FILES), chance.choice(_NAMES))

    def _state(self, chance: random.Random, files: str, names: str) -> State:
        found: State = {}

        def walk(path: str) -> None:
            directory = self.directories[path]
            for name, target in directory.entries(_chosen(chance, names, len(directory.pending))).items():
                inner = f"{path}/{name}" if path else name
                if target is None:
                    found[inner] = None
                    walk(inner)
                else:
                    found[inner] = self._content(chance, self.files[target], files)

        walk("")
        return found

    def _content(self, chance: random.Random, file: _File, how: str) -> bytes:
        content = file.durable
        for at, data in file.lost:
            if _kept(chance, how):
                content = _applied(content, ("write", at, data))
        chosen = _chosen(chance, how, len(file.pending))
        for index in sorted(chosen):
            kind, at, data = file.pending[index]
            if kind == "write" and how == "torn" and index == max(chosen):
                data = data[: chance.randrange(len(data) + 1)]
            elif kind == "write" and how == "sectors":
                data = _sectors(chance, content, at, data)
            content = _applied(content, (kind, at, data))
        return content


_FILES = ("none", "all", "beginning", "torn", "some", "sectors")
_NAMES = ("none", "all", "beginning", "some")


def _kept(chance: random.Random, how: str) -> bool:
    return how == "all" or (how != "none" and chance.random() < 0.5)


def _chosen(chance: random.Random, how: str, count: int) -> list[int]:
    if how == "none" or count == 0:
        return []
    if how == "all":
        return list(range(count))
    if how in ("beginning", "torn"):
        return list(range(chance.randrange(count + 1)))
    return [index for index in range(count) if chance.random() < 0.5]


def _sectors(chance: random.Random, content: bytes, at: int, data: bytes) -> bytes:
    """Return what is there when only some of a write's sectors came to the disk; the file's length did."""
    old = content[at : at + len(data)].ljust(len(data), b"\0")
    parts, position = [], 0
    while position < len(data):
        end = position + SECTOR - (at + position) % SECTOR
        parts.append((data if chance.random() < 0.5 else old)[position:end])
        position = end
    return b"".join(parts)


def laid_out(state: State, root: Path) -> None:
    """Write a state into an empty directory."""
    root.mkdir(mode=0o700)
    for path, content in state.items():
        if content is None:
            (root / path).mkdir(mode=0o700)
        else:
            (root / path).write_bytes(content)


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder for thousands of stores, in memory where the system has a filesystem there."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder).resolve()
