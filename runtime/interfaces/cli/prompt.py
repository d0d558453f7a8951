"""The interactive prompt of ``knotwork repl``: the greeting, Ctrl-C handling, and the loop that reads and runs input."""

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from attrs import define, evolve

from ....lang.diagnostic import printable
from ...api.clients import download_size, mask_keys
from ...api.runs import NoHome, base_directory
from ...api.session import Session
from ...api.session_data import Outcome, SessionModel
from ...api.workspace import LLMError, Schema, WorkspaceOptions, example_command
from ..repl import SessionOptions, open_repl
from ..repl.dot_commands.inspection import LISTED
from ..signals import SignalCount, count_signals
from .inputs import Unreadable, only_one_stdin, opening_callbacks, read_input, read_source, warn
from .output import Exit, Misused, colour, is_terminal, leaving, paint, say
from .turn import Screen, Turn, run_batch

# The greeting: graph, state, model and a command to try. It shows only information that is available quickly.

_SPEC = 60


def greet(options: WorkspaceOptions, session: Session) -> None:
    """Print the greeting: version, graph, state, model and a command to try."""
    say(f"knotwork {version('knotwork')}")
    for name, told in (
        ("graph", _graph(session)),
        ("state", _state(options, session)),
        ("model", _model(session.model)),
    ):
        say(printable(f"  {name}  {told}"))
    say(printable(f"  try    {example_command(session.adapter)}"))
    say(".help shows the commands")


def _graph(session: Session) -> str:
    if session.adapter is None:
        return "none · knotwork repl GRAPH opens one, such as nx:les_miserables"
    sizes = [session.adapter.explain(kind, None).rows for kind in ("nodes", "edges")]
    counted = ", ".join(f"{n:,} {what}{'' if n == 1 else 's'}" for n, what in zip(sizes, ("node", "edge"), strict=True))
    return f"{session.graph} · {counted}" if session.graph else counted


def _state(options: WorkspaceOptions, session: Session) -> str:
    if options.state is None:
        return "in memory · --state DIR saves it"
    keys = [each.key for each in session.state.snapshot().declared()]
    more = f", and {len(keys) - LISTED:,} more" if len(keys) > LISTED else ""
    return f"{options.state} · {', '.join(keys[:LISTED])}{more}" if keys else f"{options.state} · no keys declared"


def _model(model: SessionModel) -> str:
    try:
        spec = model.effective_spec
    except LLMError:
        return "none · .llm SPEC selects one"
    if size := download_size(spec):
        return f"{spec} · downloaded on first use ({size / 1e6:.0f} MB)"
    shown = mask_keys(spec)
    return shown if len(shown) <= _SPEC else f"{shown[: _SPEC - 1]}…"


# The effect of Ctrl-C depends on the stage of the session. One handler stays installed, so that no other handler ends the session.


@define
class Life:
    """The stage of a prompt session.

    The signal handler, which calls ``hear``, is installed before the state is opened and stays until the end. While the session
    opens, a signal ends the process, because no data can be lost yet. While the session is open, a signal calls ``between``,
    which discards the typed text. While the session closes, only the second signal ends the process, because the first may have
    been meant for the last command. Running commands handle signals themselves.
    """

    between: Callable[[], object] = lambda: None
    is_ended: bool = False
    """Whether SIGTERM was received while the session was open."""
    _stage: Literal["opening", "open", "ending"] = "opening"
    _late: int = 0

    def opened(self) -> None:
        """Mark the session as open. From now on, a signal does not end the process at once."""
        self._stage = "open"

    def ending(self) -> None:
        """Mark the session as closing. No more commands are run."""
        self._stage = "ending"

    def hear(self, told: SignalCount) -> None:
        """Handle a signal. While the session opens, this raises ``KeyboardInterrupt``, as Python does by default."""
        match self._stage:
            case "opening":
                raise KeyboardInterrupt
            case "open":
                self.is_ended = told.ends
                self.between()
            case "ending":
                self._late += 1
                if self._late > 1:
                    leaving(None)()


RC = "replrc"
HISTORY = "repl_history"
_ASIDE = re.compile(r"\s*\.(?:explain|help)\b", re.IGNORECASE)


def need_prompt() -> None:
    """Import the prompt's modules; this is slow. Raises ``Misused`` if prompt_toolkit is not installed."""
    if find_spec("prompt_toolkit") is None:
        raise Misused(
            "repl: the optional dependencies are not installed",
            "pip install 'knotwork[repl]'; without it, pass commands with -c, -f or on stdin",
        )
    import_module("..repl.terminal", __package__)


async def run_prompt(session: Session, options: WorkspaceOptions, life: Life, rc: bool) -> int:
    """Run the prompt until the user leaves; return the exit code. If ``rc`` is true, run the user's settings file first."""
    from ..repl.terminal import Dropped, make_prompt, paged

    turn = Turn(session, Screen(session.settings, paged))
    schema = asyncio.create_task(session.schema())
    fixes = _Fixes(turn)
    folder = _folder()

    def known_schema() -> Schema | None:
        """Return the graph's schema, or None until it is computed, because completion does not wait for it."""
        return schema.result() if schema.done() and not schema.exception() else None

    prompt = make_prompt(
        session, lambda: fixes.text, known_schema, folder and folder / HISTORY, colour=colour(sys.stdout)
    )

    def dropped() -> None:
        if prompt.app.is_running and not prompt.app.is_done:
            prompt.app.exit(exception=EOFError if life.is_ended else Dropped)

    life.between = partial(asyncio.get_running_loop().call_soon_threadsafe, dropped)
    greet(options, session)
    try:
        if rc and folder and await _own_settings(turn, folder / RC):
            return Exit.DONE
        while not life.is_ended:
            try:
                # prompt_toolkit would handle Ctrl-C only while the prompt is shown; before and after, Python's handler would be active.
                text = await prompt.prompt_async(handle_sigint=False)
            except Dropped:
                continue
            except EOFError:
                break
            done = await turn.take(text, "<input>", stop=True)
            fixes.tell(text, done)
            if any(outcome.ends for outcome in done):
                return Exit.DONE
        return Exit.INTERRUPTED if life.is_ended else Exit.DONE
    finally:
        schema.cancel()
        await asyncio.wait([schema])


class _Fixes:
    """Offers the last input with its fix applied, followed by the pieces that were not run."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.text = ""
        """The text that Tab inserts at an empty prompt; empty if no fix is known."""

    def tell(self, typed: str, done: list[Outcome]) -> None:
        """After an error, report which text Tab inserts and how many pieces were not run.

        A successful ``.explain`` or ``.help`` does not discard the fix.
        """
        if not done or (_ASIDE.match(typed) and done[-1].is_good):
            return
        left, fixed = self._turn.left, done[-1].fixed_text
        self.text = "" if fixed is None else "\n".join([fixed, *(piece.text for piece in left)])
        if left:
            _hint(f"  {len(left)} more {'input was' if len(left) == 1 else 'inputs were'} not run")
        if self.text:
            first, *more = self.text.split("\n")
            _hint(f"  Tab: {first}{' …' if more else ''}")


def _hint(text: str) -> None:
    say(paint(printable(text), "cyan", colour(sys.stderr)))


def _folder() -> Path | None:
    """Return the folder of the history and of the settings file. None if the user has no home: then the history stays in memory."""
    try:
        return base_directory().parent
    except NoHome:
        return None


async def _own_settings(turn: Turn, path: Path) -> bool:
    """Run the user's settings file if it exists; return whether it ends the session."""
    try:
        text = await asyncio.to_thread(path.read_text, encoding="utf-8")
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError) as error:
        say(
            printable(f"warning: {path} can't be read: {getattr(error, 'strerror', None) or 'it is not text in UTF-8'}")
        )
        return False
    done = await turn.take(text, os.fspath(path), stop=False)
    return any(outcome.ends for outcome in done)


# The command ``repl`` opens the workspace, and then runs the given commands or the prompt.


def perform(
    options: SessionOptions,
    commands: Sequence[str],
    files: Sequence[str],
    *,
    fail_fast: bool,
    input_file: str | None,
    rc: bool,
) -> int:
    """Run the given texts, or the prompt, in a new session; return the exit code.

    If ``rc`` is true, the prompt runs the user's settings file first. Raises ``Misused``, ``AdapterError``, ``StoreError`` or
    ``NotConfigured``.
    """
    only_one_stdin([*files, input_file])
    has_texts = bool(files or commands)
    at_prompt = not has_texts and sys.stdin is not None and sys.stdin.isatty()
    if at_prompt and sys.stdout.isatty() and not is_terminal(sys.stdout):
        # The terminal can't move its cursor (for example a shell in an editor), so read lines as from a pipe.
        say("TERM=dumb: no prompt is shown, and each command runs when it is complete; .quit ends the session")
        at_prompt = False
    if at_prompt and not is_terminal(sys.stdout):
        raise Misused("the prompt needs a terminal on stdout", "use -c TEXT or -f FILE without a terminal")
    if not at_prompt and input_file == "-" and not has_texts:
        raise Misused(
            "stdin can be the input or the commands, not both",
            "put the input into a file, or pass commands with -c or -f",
        )
    graph = options.workspace.graph
    if isinstance(graph, str) and graph.endswith((".gasl", ".lwt")):
        raise Misused(f"{graph} is a command file, not a graph", f"knotwork repl GRAPH -f {graph}")
    for name in files:
        if name != "-" and not os.path.exists(name):
            try:
                read_source(name)
            except Unreadable as error:
                raise Misused(error.diagnostic.message, "; ".join(error.diagnostic.hints)) from None
    if not at_prompt:
        session = _open_session(options, input_file)
        return asyncio.run(_closing(session, run_batch(session, commands, files, fail_fast)))
    life = Life()
    with count_signals(life.hear):  # asyncio does not replace this SIGINT handler
        need_prompt()
        session = _open_session(options, input_file)
        life.opened()
        return asyncio.run(_closing(session, run_prompt(session, options.workspace, life, rc), life))


def _open_session(options: SessionOptions, input_file: str | None) -> Session:
    """Open the workspace. This happens before the event loop starts, so that Ctrl-C ends a slow opening at once."""
    try:
        value = None if input_file is None else read_input(input_file)
    except Unreadable as error:
        raise Misused(error.diagnostic.message, *error.diagnostic.hints[:1]) from None
    return open_repl(evolve(options, input=value), opening_callbacks(warn))


async def _closing(session: Session, run: Awaitable[int], life: Life | None = None) -> int:
    """Run the session, close it, and return the exit code."""
    try:
        return await run
    finally:
        if life is not None:
            life.ending()
        await session.aclose()
