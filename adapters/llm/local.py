"""A language model in this process: xllamacpp (llama.cpp) with the weights of ``weights.SMOLLM2`` or any GGUF file.

Calls run one after the other by default. One reason is that llama.cpp's results depend on the other calls in a batch, so that
the answers of parallel calls vary slightly from run to run. Another is that parallel calls on two cores save less than a fifth
of the time. Several slots cache the prefixes of recent prompts. Therefore, if two steps with long examples call the model
alternately, it does not process the examples again each time.
"""

import asyncio
import contextlib
import os
import re
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from attrs import define, evolve, field

from . import (
    BadAnswer,
    BadRequest,
    Completion,
    EmptyAnswer,
    LLMError,
    NotConfigured,
    Options,
    PromptTooLong,
    TimedOut,
    Truncated,
    Unavailable,
    Usage,
    weights,
)
from .answers import instructions
from .conversation import LABELS, earlier_turns, labelled, require_supported
from .deltas import DeltaSender
from .local_forms import MAX_ITEMS, Form, form_of, has_no_end, label_form_of
from .tools import call_schema, llguidance_text, marked, offered, read_grammar

DEFAULT_TIMEOUT = 120.0
DEFAULT_MAX_TOKENS = 256
DEFAULT_SEED = 1
CONTEXT = 8192  # tokens of one call: SmolLM2's training context. llama.cpp uses less for a model trained with a shorter context.
PREFIXES = 2  # number of cached prompt prefixes, at 190 MB each with SmolLM2; two steps often run in parallel
BATCH = 64  # prompt tokens between checks for cancellation and deadline; SmolLM2 takes 0.25 s for them on two cores


class LocalModel:
    """The model of spec ``local`` (``path=None``; the weights are downloaded at the first call) or ``local:PATH``.

    ``say`` receives messages about a download (default: stderr). ``parallel`` is the number of concurrent calls; if it is greater
    than 1, answers depend on the calls that run at the same time. The model is loaded once, at the first call, and may be used from
    several event loops. ``aclose`` frees the model; otherwise it is freed with the object or at interpreter exit.
    """

    def __init__(self, path: str | None = None, *, say: Callable[[str], None] | None = None, parallel: int = 1) -> None:
        if parallel < 1:
            raise ValueError("parallel must be at least 1")
        say = say or partial(print, file=sys.stderr, flush=True)
        self._path = path
        self._engine = _Engine(path, say, parallel)
        self._threads = ThreadPoolExecutor(parallel, thread_name_prefix="knotwork-local")
        self._drop = weakref.finalize(self, self._engine.close)

    unsupported: Mapping[str, str] = {"images": "the local model reads only text"}

    @property
    def spec(self) -> str:
        """The model's name in ``--llm``."""
        return "local" if self._path is None else f"local:{self._path}"

    @property
    def model_spec(self) -> str:
        """The model's name in ``--llm``, as for other clients of this package."""
        return self.spec

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return one complete answer or raise ``LLMError``. ``timeout`` begins when the model is loaded and the call starts."""
        require_supported(self.unsupported, options)
        has_turns = bool(options.get("examples") or options.get("messages"))
        fills_in = bool(options.get("examples")) and not options.get("messages") and not options.get("tools")
        continues = fills_in or (
            "system" not in options and not options.get("tools") and not has_turns and is_continued(prompt)
        )
        form = None
        if "schema" in options:
            form = label_form_of(options["schema"]) if continues else form_of(options["schema"])
        if fills_in:
            prompt = labelled(prompt, options["examples"], options.get("system", ""))
        request = _request(prompt, options, continues, form)
        if fills_in:  # otherwise the model would continue with an example that it invents
            request["stop"] = [*request.get("stop", ()), f"\n{LABELS[0]}"]
        call = _Call(options.get("timeout", DEFAULT_TIMEOUT), tuple(options.get("choices", ())), continues, fills_in)
        if (listener := options.get("on_delta")) is not None:
            call.sender = DeltaSender(_from_thread(listener), is_stripped=fills_in)
        try:
            job = self._threads.submit(self._engine.answer, request, call)
        except RuntimeError as error:
            raise Unavailable("the local model is closed") from error
        answer = await _wait(job, call)
        if form is not None:
            if has_no_end(answer.text):
                raise Truncated(
                    f"the list has {MAX_ITEMS} items, and the model did not end it",
                    text=answer.text,
                    usage=answer.usage,
                    hint="ask for fewer items",
                )
            # The sentence only carries the value, like the JSON object that a server returns, so it is not kept as the raw text.
            answer = evolve(answer, text=form.as_json(answer.text))
        return marked(answer, options)

    async def aclose(self) -> None:
        """Stop running calls, end the threads and free the memory. Later calls fail."""
        self._engine.closing.set()
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)
        self._drop()


def _from_thread(listener: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function for another thread that calls ``listener`` in the running event loop; it does nothing after the loop has ended."""
    loop = asyncio.get_running_loop()

    def send(text: str) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(listener, text)

    return send


async def _wait(job: "Future[Completion]", call: "_Call") -> Completion:
    """Wait for a call in a thread; on cancellation, stop the call and wait until it has ended."""
    waiting = asyncio.wrap_future(job)
    cancelled = False
    while not waiting.done():
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            cancelled = True
            call.stop.set()
            job.cancel()  # succeeds while the call is queued
    if cancelled:
        with contextlib.suppress(BaseException):  # retrieved, so that asyncio doesn't warn; the call ends as cancelled
            waiting.exception()
        raise asyncio.CancelledError
    if waiting.cancelled():  # by aclose, while queued
        raise Unavailable("the local model was closed")
    return waiting.result()


@define
class _Call:
    """The state of a call in its thread: the conditions for stopping, and the output so far."""

    timeout: float
    choices: tuple[str, ...]
    continues: bool
    fills_in: bool = False
    """Whether the answer fills in the last label after examples; white space around it is then not part of it."""
    stop: threading.Event = field(factory=threading.Event)
    deadline: float = float("inf")
    timed_out: bool = False
    text: list[str] = field(factory=list)
    finish: str = ""
    failure: Mapping[str, Any] | None = None
    usage: Usage = field(factory=Usage)
    tokens: int = 0
    sender: DeltaSender | None = None

    def chunk(self, data: Mapping[str, Any]) -> bool:
        """Process one chunk of the stream; return whether to end the generation."""
        if "error" in data:
            self.failure = data["error"]
            return True
        if progress := data.get("prompt_progress"):
            self.usage = Usage(progress["total"], 0)
        for choice in data.get("choices") or ():
            if content := choice["delta"].get("content") if "delta" in choice else choice.get("text"):
                if self.sender is not None and not self.stop.is_set():
                    self.sender.add(content.removeprefix(" ") if self.continues and not self.text else content)
                self.text.append(content)
                self.tokens += 1
            self.finish = choice.get("finish_reason") or self.finish
        if used := data.get("usage"):
            self.usage = Usage(used["prompt_tokens"], used["completion_tokens"])
        self.timed_out = not self.finish and time.monotonic() > self.deadline
        return self.timed_out or self.stop.is_set()

    def completion(self, model: str) -> Completion:
        """Return the answer, or raise the matching error."""
        text = "".join(self.text)
        if self.continues:
            text = text.removeprefix(" ")  # the space after the label's colon
        if self.fills_in and text not in self.choices:
            text = text.strip()
        usage = self.usage if self.usage.completion_tokens else Usage(self.usage.prompt_tokens, self.tokens)
        if self.failure is not None:
            raise _error(self.failure)
        if self.timed_out:
            raise TimedOut(f"the local model did not finish within {self.timeout:g} s", usage=usage)
        if self.finish == "length":
            raise Truncated(
                f"the answer stopped at the token limit after {usage.completion_tokens} tokens",
                text=text,
                usage=usage,
                hint="raise max_tokens, or end the answer with stop= or type=",
            )
        if not self.finish:
            raise Unavailable("the local model was stopped", usage=usage)
        if not text.strip() and text not in self.choices:
            raise EmptyAnswer("the model's answer is empty", usage=usage)
        if self.choices and text not in self.choices:
            raise BadAnswer("the answer is not one of the choices", text=text, usage=usage)
        if self.sender is not None:
            self.sender.finish()
        return Completion(text, self.finish, usage, model=model, cost=0.0)


class _Engine:
    """The model in memory, shared by the threads. The first thread that needs the model loads it."""

    def __init__(self, path: str | None, say: Callable[[str], None], parallel: int) -> None:
        self.closing = threading.Event()
        self._path = path
        self._say = say
        self._parallel = parallel
        self._loading = threading.Lock()
        self._server: Any = None
        self._name = ""

    def answer(self, request: dict[str, Any], call: _Call) -> Completion:
        def stopped() -> bool:
            return call.stop.is_set() or self.closing.is_set()

        def chunk(data: Mapping[str, Any]) -> bool:
            return call.chunk(data) or self.closing.is_set()

        server = self._load_once(stopped)
        call.deadline = time.monotonic() + call.timeout
        if stopped():
            raise Unavailable("the local model was stopped")
        try:
            (server.handle_completions if call.continues else server.handle_chat_completions)(request, chunk)
        except (
            ValueError,
            TypeError,
            RuntimeError,
        ) as error:  # an unusable grammar schema, or a template error
            raise BadRequest(f"the local model can't process this request: {error}") from error
        return call.completion(self._name)

    def close(self) -> None:
        self.closing.set()
        self._server = None  # its destructor ends llama.cpp's own threads

    def _load_once(self, stopped: Callable[[], bool]) -> Any:
        while not self._loading.acquire(timeout=0.1):
            if stopped():
                raise Unavailable("the local model was stopped")
        try:
            if self._server is None:
                self._server = self._load(stopped)
            return self._server
        finally:
            self._loading.release()

    def _load(self, stopped: Callable[[], bool]) -> Any:
        xllamacpp = _library()
        if self._path is None:
            try:
                path = weights.find() or weights.pull(self._say, stopped=stopped)
            except weights.Stopped:
                raise Unavailable("the local model was stopped") from None
        else:
            path = Path(self._path).expanduser()
            _check_gguf(path)
        try:
            server = xllamacpp.Server(_parameters(xllamacpp, path, self._parallel))
        except (RuntimeError, ValueError, TypeError) as error:
            raise NotConfigured(
                f"{path} can't be loaded as a model",
                hint="the file is damaged, or xllamacpp does not support its model",
            ) from error
        # llama.cpp's loop runs in its own thread. A server that is dropped before the loop has started never ends, so
        # one token is generated, to ensure that the loop has started.
        server.handle_completions({"prompt": "a", "max_tokens": 1, "stream": True}, lambda _: False)
        self._name = path.stem
        return server


def _library() -> Any:
    # By default OpenMP's threads wait actively for one another, which cuts the speed to a fifth on busy cores. The setting is
    # read when the library is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import xllamacpp
    except ImportError as error:
        raise NotConfigured(
            "the local model needs the extra `local`", hint="type: pip install 'knotwork[local]'"
        ) from error
    return xllamacpp


def _parameters(xllamacpp: Any, path: Path, parallel: int) -> Any:
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    p = xllamacpp.CommonParams()
    p.model.path = str(path)
    p.n_parallel = max(PREFIXES, parallel)
    p.n_ctx = CONTEXT * p.n_parallel
    # If slots share memory, or with flash attention, the order of summation depends on earlier requests, and so do the
    # answers (log-probabilities differ by up to 0.1). Therefore each slot has its own memory.
    p.kv_unified = False
    p.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    p.slot_prompt_similarity = 0.5  # with the default of 0.1, the header shared by all prompts selects the wrong slot
    p.cache_ram_mib = 0
    p.n_batch = p.n_ubatch = BATCH
    p.cpuparams.n_threads = max(1, cores // 2)  # generation is limited by memory bandwidth: more threads are slower
    p.cpuparams_batch.n_threads = cores  # prompt processing is limited by computation
    p.warmup = False
    p.fit_params = False
    p.verbosity = -1
    # The server always listens on a port: restrict it to this machine and require a key.
    p.hostnames = ["127.0.0.1"]
    p.port = 0
    p.api_keys = [secrets.token_urlsafe(32)]
    p.ui = False
    p.endpoint_slots = False
    p.endpoint_props = False
    return p


def _check_gguf(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
    except OSError as error:
        raise NotConfigured(f"the model file {path} can't be read: {error.strerror}") from error
    if magic != b"GGUF":
        raise NotConfigured(f"{path} is not a GGUF file", hint="local:PATH requires a model in GGUF format")


_LABEL = re.compile(r"([^\W\d_][^:\n]{0,39}:)\Z")


def is_continued(prompt: str) -> bool:
    """Return whether a prompt is a pattern to continue: it ends with a label that occurs at least twice earlier, each time with a value.

    ``Review: ... / Mood: glad / Review: ... / Mood: sad / Review: ... / Mood:`` is an example. A small model continues such a
    pattern in plain text better than inside a chat message (19 against 11 correct moods for 20 reviews).
    """
    label = _LABEL.search(prompt)
    return label is not None and len(re.findall(rf"^{re.escape(label[1])} ?\S", prompt, re.MULTILINE)) >= 2


def _request(prompt: str, options: Options, continues: bool, form: Form | None = None) -> dict[str, Any]:
    request: dict[str, Any] = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # also send chunks while the prompt is processed, so that the call can be stopped then
        "temperature": float(options.get("temperature", 0.0)),
        "max_tokens": options.get("max_tokens", DEFAULT_MAX_TOKENS),
        "seed": options.get("seed", DEFAULT_SEED + options.get("sample", 0)) % 2**32,
        "cache_prompt": True,
    }
    if "top_p" in options:
        request["top_p"] = float(options["top_p"])
    tools = offered(options)
    if continues:
        request["prompt"] = prompt
    else:
        if tools:
            prompt = f"{prompt}\n\n{instructions(options)}"
        system = [{"role": "system", "content": options["system"]}] if options.get("system") else []
        request["messages"] = [*system, *earlier_turns(options), {"role": "user", "content": prompt}]
    if stop := options.get("stop"):
        request["stop"] = [stop] if isinstance(stop, str) else list(stop)
    if sum(name in options for name in ("choices", "schema", "tools", "grammar")) > 1:
        raise BadRequest("choices, schema, tools and grammar can't be combined")
    if "choices" in options:
        request["grammar"] = choice_grammar(options["choices"], " " if continues else "")
    if options.get("grammar"):
        request["grammar"] = llguidance_text(read_grammar(options["grammar"]))
    if form is not None:
        request["grammar"] = form.grammar
    elif "schema" in options or tools:
        schema = _without_patterns(options["schema"] if "schema" in options else call_schema(tools))
        if continues:
            request["json_schema"] = schema
        else:
            request["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    try:
        turns = "".join(turn["content"] for turn in earlier_turns(options))
        f"{prompt}{options.get('system', '')}{turns}".encode()
    except UnicodeEncodeError as error:
        raise BadRequest("the prompt contains a lone surrogate, which is not valid text") from error
    return request


def choice_grammar(choices: Sequence[str], before: str = "") -> str:
    """Return a GBNF grammar that accepts only ``before`` followed by one of ``choices`` (see llama.cpp, grammars/README.md)."""
    if not choices or "" in choices:
        raise BadRequest("choices must be non-empty strings")
    return "root ::= " + " | ".join(f'"{"".join(map(_gbnf_character, before + choice))}"' for choice in choices)


def _gbnf_character(character: str) -> str:
    if 0xD800 <= ord(character) <= 0xDFFF:
        raise BadRequest("a choice contains a lone surrogate, which is not valid text")
    plain = character.isascii() and (character.isalnum() or character == " ")
    return character if plain else f"\\U{ord(character):08X}"


def _without_patterns(schema: Any) -> Any:
    """Return the schema without ``pattern``: llama.cpp supports few patterns and reports the others on stderr.

    The caller must check answers against the original schema.
    """
    if isinstance(schema, Mapping):
        kept = {key: value for key, value in schema.items() if not (key == "pattern" and isinstance(value, str))}
        values = {"const", "enum", "default", "examples"}
        return {key: value if key in values else _without_patterns(value) for key, value in kept.items()}
    return [_without_patterns(part) for part in schema] if isinstance(schema, list | tuple) else schema


def _error(failure: Mapping[str, Any]) -> LLMError:
    message = str(failure.get("message", "unknown error"))
    if failure.get("type") == "exceed_context_size_error":
        size, room = failure.get("n_prompt_tokens"), failure.get("n_ctx")
        return PromptTooLong(
            f"the prompt has {size} tokens; the maximum of the local model is {room}",
            hint="shorten the prompt or the texts that it quotes",
        )
    if failure.get("code") in (400, 404, 422):
        return BadRequest(f"the local model refuses the request: {message}")
    return Unavailable(f"the local model failed: {message}")
