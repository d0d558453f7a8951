"""The interactive session at a prompt: GASL commands, LWT steps and expressions that share one set of values.

The session itself is implemented in ``runtime.api.session``. This package contains the session's options, the dot commands
(``dot_commands``), the layout of values as text (``tables``), and the prompt_toolkit interface (``terminal``: keys, colours,
completion, the pager). Only ``terminal`` needs a screen. Sessions that read stdin, and notebooks, use only the other modules.
"""

from typing import Any

from attrs import field, frozen

from ...api.clients import check_prices, default_spec
from ...api.session import DisplaySettings, Mode, Session, open_session
from ...api.session_data import Ledger
from ...api.workspace import OpeningCallbacks, WorkspaceOptions
from ..options import Limits, in_words_of_options, named_specs, price_of
from .dot_commands import run_dot

__all__ = ["SessionOptions", "open_repl"]


@frozen(kw_only=True)
class SessionOptions:
    """Session options as the user wrote them.

    ``llm`` is the model's spec (None: the default model, opened on first use). ``models`` are strings of the form NAME=SPEC.
    """

    workspace: WorkspaceOptions = field(factory=WorkspaceOptions)
    llm: str | None = None
    models: tuple[str, ...] = ()
    limits: Limits = field(factory=Limits)
    input: Any = None
    mode: Mode = "auto"


def open_repl(options: SessionOptions, callbacks: OpeningCallbacks) -> Session:
    """Open a session with dot commands.

    Raises ``AdapterError``, ``StoreError``, ``NotConfigured``, ``OpeningCancelled`` or ``Misused``.
    """
    limits = options.limits
    price, named = price_of(limits.price), named_specs(options.models)
    if limits.max_cost is not None and price is None:
        check_prices([options.llm or default_spec(needed=False), *named.values()])
    with in_words_of_options(options.workspace):
        return open_session(
            options.workspace, options.llm, named, ledger=Ledger(limits.max_calls, limits.max_tokens, limits.max_cost),
            price=price, cache=limits.cache, callbacks=callbacks, input=options.input,
            settings=DisplaySettings(options.mode), dot_commands=run_dot,
        )  # fmt: skip
