"""Cassettes: human-readable files of model calls. One adapter replays a cassette, another one records it.

A cassette is JSONL with sorted keys. The first line is a header; every other line contains a request and its result::

    {"cassette": 1, "made_by": "knotwork", "model": "openai:gpt-5-mini"}
    {"answer": {"finish_reason": "stop", "text": "Oslo"}, "request": {"prompt": "Capital of Norway?"}}
    {"error": {"kind": "truncated", "message": "cut", "text": "Os"}, "request": {"prompt": "Capital?"}}

``request`` contains the prompt and the options that are part of the request (system, temperature, schema, ...). If a request
occurs several times, its answers are used in the order of the lines. When all have been used, the last one is repeated. With
``sample``, the answer is selected by index instead. ``answer`` has text, and may have finish_reason, usage ({"prompt_tokens",
"completion_tokens"}) and model (default: the header's model). If the request offers tools, ``answer`` may have ``{"tool": NAME,
"arguments": {...}}`` instead of text. A hand-written request may be ``{"prompt_contains": "..."}``. The answer in such a line
is used for every request whose prompt contains this text, if the request has the options given in the line and is not itself in
the cassette. If several such lines match, the first is used. Empty lines are skipped. A cassette never contains a call's key or
headers.
"""

from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Unpack

import orjson
from attrs import define, field, frozen
from rapidfuzz import fuzz, process

from ..permissions import named_folder, named_opener
from . import (
    BY_HAND,
    ERRORS,
    BadAnswer,
    Completion,
    LLMError,
    NotConfigured,
    NotRecorded,
    Options,
    Truncated,
    Usage,
    error_of,
)
from .json_schema import canonical, read_json
from .middleware import Client, Layer, Own, asked_for, with_floats
from .tools import called_text, marked

_HEADER = "cassette"


@frozen
class _Answer:
    completion: Completion | None
    error: Mapping[str, str] | None

    def give(self) -> Completion:
        if self.completion is not None:
            return self.completion
        assert self.error is not None  # noqa: S101 - the reader sets one of the two
        raise error_of(self.error["kind"], self.error["message"], text=self.error.get("text", ""))


@define
class _Track:
    """The answers to one request, in order."""

    answers: list[_Answer] = field(factory=list)
    given: int = 0

    def next(self, sample: int | None) -> _Answer:
        if sample is None:
            sample = self.given
            self.given += 1
        return self.answers[min(max(sample, 0), len(self.answers) - 1)]


@frozen
class _Pattern:
    part: str
    options: Mapping[str, Any]
    track: _Track

    def fits(self, prompt: str, options: Mapping[str, Any]) -> bool:
        return self.part in prompt and all(options.get(name) == value for name, value in self.options.items())


class ReplayModel(Own):
    """Answers requests from the cassette at ``path``. Raises ``NotRecorded`` if a request is not in the cassette.

    An unreadable cassette raises ``NotConfigured`` with the file and line. ``spec`` is the recorded model.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.spec = ""
        self._tracks: dict[bytes, _Track] = {}
        self._patterns: list[_Pattern] = []
        self._prompts: list[str] = []
        self._read()

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the recorded answer, or raise the recorded error."""
        asked: dict[str, Any] = orjson.loads(canonical(asked_for(options)))
        track = self._tracks.get(_key(prompt, asked))
        if track is None:
            track = next((loose.track for loose in self._patterns if loose.fits(prompt, asked)), None)
        if track is None:
            raise NotRecorded(self._not_recorded(prompt), hint="record it with --llm record:FILE,SPEC", attempts=0)
        return marked(track.next(options.get("sample")).give(), options)

    async def aclose(self) -> None:
        """Do nothing: the constructor has read the complete cassette."""

    def _not_recorded(self, prompt: str) -> str:
        text = f"{self.path.name} has no answer to {_short(prompt)}"
        if prompt in self._prompts:
            return f"{text} with these options, only with other options"
        near = process.extractOne(prompt, self._prompts, scorer=fuzz.ratio)
        return f"{text}; the nearest recorded prompt is {_short(near[0], prompt)}" if near else text

    def _read(self) -> None:
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
        except OSError as error:
            there = "create it with --llm record:FILE,SPEC" if isinstance(error, FileNotFoundError) else ""
            why = (error.strerror or str(error)).lower()
            raise NotConfigured(f"the cassette {self.path} can't be read: {why}", hint=there) from None
        except UnicodeDecodeError as error:
            raise NotConfigured(f"the cassette {self.path} is not UTF-8 (byte {error.start})") from None
        headed = False
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = _dict(read_json(line), "the line")
                if not headed:
                    if entry.get(_HEADER) != 1:
                        raise ValueError('the first line must be {"cassette": 1, "made_by": ..., "model": ...}')
                    self.spec = str(entry.get("model") or "")
                    self._by_hand = str(entry.get("made_by") or "").startswith("hand")
                    headed = True
                else:
                    self._enter(entry)
            except (ValueError, KeyError) as error:
                why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                raise NotConfigured(f"{self.path}:{number}: invalid cassette line: {why}") from None
        if not headed:
            raise NotConfigured(f"{self.path} is empty, so it is not a cassette")

    def _enter(self, entry: dict[str, Any]) -> None:
        request = with_floats(_dict(entry["request"], "request"))
        answer = _read_answer(entry, self.spec, self._by_hand)
        if (part := request.pop("prompt_contains", None)) is not None:
            if "prompt" in request:
                raise ValueError("a request must have either prompt or prompt_contains, not both")
            for loose in self._patterns:
                if loose.part == part and loose.options == request:
                    loose.track.answers.append(answer)
                    return
            self._patterns.append(_Pattern(_str(part, "prompt_contains"), request, _Track([answer])))
            return
        prompt = _str(request.pop("prompt"), "prompt")
        track = self._tracks.setdefault(_key(prompt, request), _Track())
        track.answers.append(answer)
        if len(track.answers) == 1:
            self._prompts.append(prompt)


def _read_answer(entry: dict[str, Any], made_with: str, by_hand: bool) -> _Answer:
    if ("error" in entry) == ("answer" in entry):
        raise ValueError("a line must have either an answer or an error")
    if "error" in entry:
        error = {name: _str(value, name) for name, value in _dict(entry["error"], "error").items()}
        if error["kind"] not in ERRORS:
            raise ValueError(f"unknown kind of error {error['kind']!r}")
        return _Answer(None, {"message": error["kind"], **error})
    answer = _dict(entry["answer"], "answer")
    if "tool" in answer:
        call = (_str(answer["tool"], "tool"), _dict(answer.get("arguments", {}), "arguments"))
        if "text" in answer:
            raise ValueError("an answer must have either text or tool, not both")
        answer = {**answer, "text": called_text([call])}
    usage = _dict(answer.get("usage", {}), "usage")
    counts = [usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        raise ValueError("each number of tokens in usage must be a whole number, 0 or greater")
    return _Answer(
        Completion(
            text=_str(answer["text"], "text"),
            finish_reason=_str(answer.get("finish_reason", "stop"), "finish_reason"),
            usage=Usage(*counts),
            model=BY_HAND if by_hand else _str(answer.get("model", made_with), "model"),
        ),
        None,
    )


def _dict(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")
    return value


def _str(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a string")
    return value


def _key(prompt: str, options: Mapping[str, Any]) -> bytes:
    return canonical([prompt.encode(errors="surrogatepass").hex() if not _is_text(prompt) else prompt, options])


def _is_text(prompt: str) -> bool:
    try:
        prompt.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(prompt: str, beside: str = "") -> str:
    """Return the prompt's first 80 characters, or 80 characters around the first difference between the prompt and ``beside``."""
    flat = " ".join(prompt.split())
    other = " ".join(beside.split())
    differ = next((i for i, (a, b) in enumerate(zip(flat, other, strict=False)) if a != b), 0)
    start = max(0, differ - 40) if differ > 60 else 0
    cut = flat[start : start + 80]
    return f'"{"..." if start else ""}{cut}{"..." if start + 80 < len(flat) else ""}"'


class RecordModel(Layer):
    """Calls ``inner`` and writes each request with its answer or error to a new cassette at ``path``.

    ``spec`` is the model's name in the header. The file is created with the first answer, so that a run that fails earlier
    overwrites nothing. An existing file that is not a cassette is refused (``NotConfigured``). Every line is flushed.
    """

    def __init__(self, inner: Client, path: str | Path, spec: str) -> None:
        self.path = Path(path)
        self.spec = spec
        super().__init__(inner)
        self._file: FileIO | None = None
        self._end = 0
        self._torn = ""
        self._check()

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner model's answer; errors are recorded and raised again."""
        try:
            answer = await self._inner.generate(prompt, **options)
        except LLMError as error:
            found = {"kind": error.kind, "message": error.message}
            if isinstance(error, Truncated | BadAnswer):
                found["text"] = error.text
            self._write(prompt, options, {"error": found})
            raise
        kept: dict[str, Any] = {"text": answer.text, "finish_reason": answer.finish_reason}
        if (call := answer.tool) is not None:
            kept = {"tool": call.name, "arguments": call.arguments}
        if answer.usage.total:
            kept["usage"] = {
                "prompt_tokens": answer.usage.prompt_tokens,
                "completion_tokens": answer.usage.completion_tokens,
            }
        if answer.model != self.spec:  # also an empty name: otherwise replay would use the header's model
            kept["model"] = answer.model
        self._write(prompt, options, {"answer": kept})
        return answer

    async def aclose(self) -> None:
        """Close the cassette and the inner model."""
        if self._file is not None:
            self._file.close()
            self._file = None
        await super().aclose()

    def _check(self) -> None:
        try:
            with self.path.open("rb") as file:
                first = file.readline(4096)
        except FileNotFoundError:
            return
        except OSError as error:
            raise NotConfigured(f"the cassette {self.path} can't be written: {error.strerror}") from None
        if first.strip() and f'"{_HEADER}"'.encode() not in first:
            raise NotConfigured(f"{self.path} is not a cassette, so it is not overwritten")

    def _write(self, prompt: str, options: Options, came: dict[str, Any]) -> None:
        if not _is_text(prompt):
            return  # the prompt has lone surrogates: the request was refused, and can't be written
        line = canonical({"request": {"prompt": prompt, **asked_for(options)}, **came}) + b"\n"
        if self._end == 0:
            line = canonical({_HEADER: 1, "made_by": "knotwork", "model": self.spec}) + b"\n" + line
        try:
            if self._torn:
                raise OSError(0, self._torn)
            if self._file is None:
                named_folder(self.path.parent)
                self._file = open(self.path, "wb", buffering=0, opener=named_opener)  # noqa: SIM115 - closed by aclose
            self._append(self._file, line)
        except OSError as error:
            raise NotConfigured(f"the cassette {self.path} can't be written: {error.strerror or error}") from None

    def _append(self, file: FileIO, line: bytes) -> None:
        """Append a line with one write. The remains of a failed write are removed, so that no answer is recorded twice."""
        try:
            if file.write(line) != len(line):
                raise OSError(0, "only part of a line was written")
        except OSError as error:
            self._torn = f"its last line is incomplete: {error.strerror or error}"
            file.truncate(self._end)
            file.seek(self._end)
            self._torn = ""
            raise
        self._end += len(line)
