"""Writes the reference pages that are made from code: rules, commands, events, the HTTP API. ``--check`` only says if they are current."""

import json
import sys
from pathlib import Path
from typing import Any, get_args

from http_page import page, written_out
from knotwork.lang.catalogue.rules import RULES
from knotwork.lang.documents.plan import PLAN_SCHEMA
from knotwork.lang.documents.seed import SEED_SCHEMA, SEED_SCHEMA_000
from knotwork.runtime.api.server_runs import Model, RunLimits
from knotwork.runtime.events import EVENTS
from knotwork.runtime.interfaces import http as shared_rooms
from knotwork.runtime.interfaces import web
from knotwork.runtime.interfaces.cli.commands import COMMANDS, loaded
from knotwork.runtime.interfaces.cli.output import MEANINGS
from knotwork.runtime.interfaces.http.middleware import BRACKETS
from knotwork.runtime.interfaces.http.problems import OUT_OF_TIME, OVER_BUDGET, SHUTTING_DOWN
from knotwork.runtime.interfaces.http.server import Limits
from knotwork.runtime.interfaces.web.answer_responses import FAILURES
from knotwork.runtime.interfaces.web.app import create_app
from knotwork.runtime.interfaces.web.problem_responses import OF_HTTP
from knotwork.runtime.interfaces.web.web_models import ServerSettings
from python_page import page as python_page

REFERENCE = Path(__file__).parent / "reference"
MADE = "<!-- Made by docs/generate.py from the code; a test holds it current. -->\n"


def rules() -> str:
    """The page of all diagnostics."""
    lines = [
        "# Rules\n", MADE,
        "Every diagnostic has a code. `knotwork rules CODE` prints an entry of this page.",
        "`# knotwork: ignore[CODE]` directly above a step or a command silences a rule for it.\n",
        "| code | name | severity | summary |", "|---|---|---|---|",
    ]  # fmt: skip
    for rule in RULES.values():
        severity = f"{rule.severity} ({rule.lenient} in lenient)" if rule.lenient else rule.severity
        lines.append(f"| [{rule.code}](#{rule.code.lower()}) | {rule.name} | {severity} | {rule.summary} |")
    for rule in RULES.values():
        lines += [f"\n## {rule.code}\n", f"**{rule.name}.** {rule.summary} {rule.why}"]
        for title, script in (("Instead of", rule.bad), ("write", rule.good)):
            if script:
                lines += [f"\n{title}\n", "````text", script.rstrip("\n"), "````"]
    return "\n".join(lines) + "\n"


def commands() -> str:
    """The page of the command line."""
    lines = [
        "# Command line\n", MADE,
        "`-` stands for standard input wherever a file is read. Output goes to standard output, everything else to standard",
        "error. Settings by environment: `KNOTWORK_LLM` (the model), `KNOTWORK_DEBUG` (0 to 3), `KNOTWORK_HOME` (where",
        "models, caches and runs are kept), `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `KNOTWORK_API_KEY` (for a URL's model).\n",
        "## Exit codes\n", "| code | meaning |", "|---|---|",
    ]  # fmt: skip
    lines += [f"| {int(code)} | {meaning} |" for code, meaning in MEANINGS.items()]
    lines += [line for name in COMMANDS for line in _command(loaded(name), f"knotwork {name}")]
    return "\n".join(lines) + "\n"


def _command(command: Any, path: str) -> list[str]:
    # Typer brings classes of its own for what looks like Click's, so the attributes are asked, not the class.
    if hasattr(command, "commands"):
        inside = [(name, inner) for name, inner in command.commands.items() if not inner.hidden]
        own = _page(command, path) if command.invoke_without_command else []
        return own + [line for name, inner in inside for line in _command(inner, f"{path} {name}")]
    return _page(command, path)


def _page(command: Any, path: str) -> list[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join([path, *(("[options]",) if options else ()), *map(_argument, arguments)])
    lines = [f"\n## {path}\n", f"`{usage}`\n", _text(command.help or "")]
    if options:
        lines += ["", "| option | meaning |", "|---|---|"]
        lines += [f"| `{_names(option)}` | {_text(option.help or '')} |" for option in options]
    return lines


def _argument(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper().strip("[].")
    name += "..." if argument.nargs == -1 else ""
    return name if argument.required else f"[{name}]"


def _names(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    choices = "|".join(map(str, get_args(option.type_descriptor.annotation)))
    return names if option.is_flag else f"{names} {option.metavar or choices}".replace("|", "\\|")


def _text(text: str) -> str:
    return " ".join(text.replace("\b", "").split()).replace("``", "`").replace("|", "\\|")


def events() -> str:
    """The page of all events."""
    lines = [
        "# Events\n", MADE,
        "A run reports what it does as a stream of typed events (`knotwork.runtime.events`); subscribe with",
        "`Events().subscribe(function)` and pass it as `lwt.run(..., events=...)`. `at` is seconds on the monotonic clock.\n",
        "| event | fields | when |", "|---|---|---|",
    ]  # fmt: skip
    for event in EVENTS:
        fields = ", ".join(f"`{a.name}`" for a in event.__attrs_attrs__)
        when = _text((event.__doc__ or "").split(":", 1)[1])
        lines.append(f"| `{event.name}` | {fields} | {when} |")
    return "\n".join(lines) + "\n"


def http() -> str:
    """The page of the HTTP API."""
    nowhere = Path("/nonexistent")
    settings = ServerSettings((Model("default", "local"),), nowhere, nowhere)
    document = create_app(settings).openapi()
    told, run = Limits(), RunLimits()
    limits = {
        "runs at once, of all": (f"{told.runs}", "`--max-runs`; 503 beyond"),
        "runs at once, of a key": (f"{told.runs_per_key}", "`--max-runs-per-key`; 429 beyond"),
        "requests of a key": (f"{told.rate:g} a minute", "`--rate-per-key`; 429 beyond, with `Retry-After`"),
        "a request's body": (f"{told.body_bytes >> 10:,} KiB", "413 beyond"),
        "lists and objects of a body": (f"{BRACKETS:,}", "413 beyond"),
        "time for a request's body to come": (f"{told.body_seconds:g} s", "408 beyond"),
        "runs kept, of a key": (f"{settings.keep:,}", "`--keep-runs`; the oldest ones go"),
        "time of a run": (f"{run.seconds:g} s", "`--time-limit`; then the best answer so far counts"),
        "calls, tokens and cost of a run": ("none", "`--max-calls`, `--max-tokens`, `--max-cost`"),
    }
    shared = {OUT_OF_TIME, OVER_BUDGET, SHUTTING_DOWN, *FAILURES.values(), *OF_HTTP.values()}
    problems = shared.union(*(written_out(Path(rooms.__file__).parent) for rooms in (shared_rooms, web)))
    return page(document, MADE, limits, list(problems))


def python() -> str:
    """The page of the public Python modules."""
    return python_page(MADE)


def plan_schema() -> str:
    """The JSON Schema of plans."""
    return json.dumps(PLAN_SCHEMA, indent=2) + "\n"


def seed_schema() -> str:
    """The JSON Schema of Formula Seeds in the declarative form."""
    return json.dumps(SEED_SCHEMA, indent=2) + "\n"


def seed_schema_000() -> str:
    """The JSON Schema of Formula Seeds in the formula form."""
    return json.dumps(SEED_SCHEMA_000, indent=2) + "\n"


PAGES = {
    "rules.md": rules, "cli.md": commands, "events.md": events, "http.md": http, "plan.schema.json": plan_schema,
    "seed.schema.json": seed_schema, "seed-000.schema.json": seed_schema_000, "python.md": python,
}  # fmt: skip


def main() -> int:
    """Write the pages, or with ``--check`` say which are not current."""
    stale = []
    for name, make in PAGES.items():
        path, text = REFERENCE / name, make()
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"not current: {', '.join(stale)}; run python docs/generate.py")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
