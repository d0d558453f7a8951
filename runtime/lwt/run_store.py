"""Run directories: a run is saved while it is running, so that it can be listed and, after a kill, resumed.

A run is a folder (mode 0700) with ``run.jsonl`` (0600): one JSON object per line, and each line is appended with one write::

    {"record": "run_started", "run", "time", "script_hash", "input_hash", "versions", "model", "name", "script", "options",
     "file_hashes"?}
    {"record": "item_done", "step", "item", "input_hash", "output", "value"?, "finish_reason", "attempts", "usage", ...}
    {"record": "step_done", "step", "status", "input_hash", "output", "value"?, "reason", "usage", "cost", "seconds", ...}
    {"record": "run_finished", "status", "seconds", "usage", "cost", "calls"}

and ``input.json``, the run's input. ``value`` is present only if it differs from the output. ``runtime.runs.journal`` defines
the file's rules. A call that was in progress when the process ended is made again, so a model call may be made more than once.
See ``docs/design/state.md#durable-runs``.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from ...lang.trees.lwt import Script
from ..models.caller import refuse_keys
from ..runs.journal import FILE, RunError, RunRecorder, StoredRun, base_directory, begin, hash_of

INPUT = "input.json"


@frozen
class RunInfo:
    """A saved run in a list. ``status`` is "running or interrupted" if the end of the run was not recorded."""

    run_id: str
    path: Path
    started: str
    script: str
    status: str
    model: str
    kind: str = "script"
    """The kind in the run's head, such as "rank" or "seed" (a run that ``seeds.seed_store`` reads); "script" without a kind."""


def start(
    script: Script,
    *,
    input: Any = None,  # the name in the language
    model: str = "",
    options: Mapping[str, Any] | None = None,
    base: Path | None = None,
    hashes: Mapping[str, str] | None = None,
) -> "RunRecorder":
    """Create a run directory for ``script`` and return its recorder.

    ``model`` is a spec as the user wrote it (without a key); ``options`` are the run's other parameters, as JSON.
    ``hashes`` are the hashes of the files that the script names (``script_files.file_hashes``). Raises ``NotConfigured``, before
    anything is written, if the script has an API key in place of a model name.
    """
    refuse_keys(script)
    text, written = script_text(script), _canonical(input)
    script_hash = hash_of(text.encode("utf-8", "surrogatepass"))
    return RunRecorder(
        *begin(
            base, script=text, script_hash=script_hash, input_hash=hash_of(written), model=model, name=script.source.name,
            mode=script.mode, options=options, files={INPUT: written}, hashes=hashes,
        )
    )  # fmt: skip


class Stored(StoredRun):
    """A recorded run of a script."""

    @property
    def script(self) -> str:
        """The script's text."""
        return str(self.head["script"])

    @property
    def input(self) -> Any:
        """The input, as JSON; None if the run had no input."""
        try:
            return json.loads((self.path / INPUT).read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(f"the input of run {self.run_id} can't be read: {error}") from error

    def differences(self, script: Script | None, input: Any, hashes: Mapping[str, str] | None = None) -> list[str]:
        """Return a message for each change (script, input, ``hashes`` of the named files) since the run started."""
        found = []
        if (
            script is not None
            and hash_of(script_text(script).encode("utf-8", "surrogatepass")) != self.head["script_hash"]
        ):
            found.append(f"the script changed{_changed_steps(self.script, script)}")
        if input is not None and hash_of(_canonical(input)) != self.head["input_hash"]:
            found.append("the input changed")
        return [*found, *changed_files(self.head, hashes)]

    def resume(
        self,
        script: Script | None = None,
        *,
        input: Any = None,
        force: bool = False,
        hashes: Mapping[str, str] | None = None,
    ) -> "RunRecorder":
        """Open the run for resuming and return its recorder, which recalls the saved answers.

        Raises ``RunError`` if a given ``script``, ``input`` or file (``hashes``) differs from the recorded one, or a record is damaged.
        With ``force`` the run is resumed anyway: steps run again if their inputs changed or their records are lost.
        """
        changed = self.differences(script, input, hashes)
        return self.reopen(
            lambda journal, stored: RunRecorder(self.run_id, self.path, journal, stored.answers), changed, force
        )


load = Stored.load


def changed_files(head: Mapping[str, Any], hashes: Mapping[str, str] | None) -> list[str]:
    """Return a message for each file of a recorded run whose hash is now another one (``hashes``; None: the files are not compared)."""
    if hashes is None:
        return []
    recorded: Mapping[str, str] = head.get("file_hashes") or {}
    return [f"the file {name} changed" for name, digest in recorded.items() if hashes.get(name) != digest]


def list_runs(base: Path | None = None) -> list[RunInfo]:
    """Return the saved runs, the latest first. Folders without a readable run are skipped."""
    base = base_directory() if base is None else base
    found = []
    try:
        paths = sorted(base.iterdir(), reverse=True)
    except OSError:  # missing or not readable
        return []
    for path in paths:
        try:
            with open(path / FILE, "rb") as file:
                head = json.loads(file.readline())
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - 4096))
                tail = file.read().splitlines()[-1:]
            status = "running or interrupted"
            if tail and tail[0].startswith(b'{"record": "run_finished"'):
                status = json.loads(tail[0])["status"]
            found.append(
                RunInfo(
                    head["run"], path, head["time"], head["name"], status, head["model"], head.get("kind", "script")
                )
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


def _canonical(value: Any) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RunError(f"the run can't be recorded: the input is not JSON: {error}") from error


def script_text(script: Script) -> str:
    """Return the script's source text; for a script that was built by a program, return its canonical format."""
    if script.source.text or not script.items:
        return script.source.text
    from ...lang.printer.lwt_printer import format_lwt

    return format_lwt(script)


def _changed_steps(before: str, script: Script) -> str:
    """Return the names of the changed steps as one text; "" if only comments or the layout have changed."""
    from ...lang.parse.lwt import parse_lwt

    old = {step.id: step for step in parse_lwt(before, script.mode, None).steps}
    new = {step.id: step for step in script.steps}
    steps = [step for step in {**old, **new} if old.get(step) != new.get(step)]
    return f" (steps {', '.join(steps[:8])}{' …' if len(steps) > 8 else ''})" if steps else " (its layout)"
