"""What a person meant who typed something that is not there: words of other tools, options that stand elsewhere."""

import re
from collections.abc import Mapping

__all__ = ["LIKELY", "likely"]

LIKELY: Mapping[str, str] = {
    "lint": "check", "validate": "check", "verify": "state verify", "format": "fmt", "query": "gasl", "html": "report",
    "find": "gasl -c 'FIND ...'", "show": "plan", "dag": "plan", "exec": "run", "execute": "run", "start": "run",
    "ls": "runs", "list": "runs", "history": "runs", "log": "state log", "models": "model", "pull": "model pull",
    "explain": "rules", "rule": "rules", "resume": "run --resume", "compute": "seed compute", "extract": "seed run",
    "seeds": "seed", "formula": "seed", "sensitivity": "seed sensitivity", "convert": "seed convert", "schema": "seed schema",
    **dict.fromkeys(("anot", "sort", "rerank", "order", "ranking"), "rank"),
    **dict.fromkeys(("hdt", "question", "traverse", "explore", "hypothesize"), "ask"), "search": "ask --search beam",
    "compile": "seed compile", "compiler": "seed compile",
    "generate": "answer", "generate-answer": "answer", "judge": "answer",
    **dict.fromkeys(("shell", "console", "prompt", "interactive", "session"), "repl"),
    **dict.fromkeys(("agent", "agents", "tools"), "mcp"), "kit": "agent-kit",
    "server": "serve", "http": "serve", "web": "serve", "lab": "serve", "keys": "serve --list-keys",
}  # fmt: skip
"""The command that people mean who type a word of other tools."""


def likely(message: str, argv: list[str]) -> str:
    """Say what was probably meant, where the message itself does not."""
    if argv[:1] == ["run"] and message.startswith("Got unexpected extra argument"):
        return "run takes one script; its input is given with --input FILE"
    if argv[:1] in (["answer"], ["ask"], ["rank"]) or argv[:2] == ["seed", "compile"]:
        return _likely_of_loop(argv, message)
    if argv[:1] == ["repl"] and message.startswith(("No such option: --graph", "No such option: -g")):
        return "the graph stands behind repl: knotwork repl GRAPH"
    if argv[:1] == ["seed"] and len(argv) > 1 and argv[1].endswith((".md", ".txt")):
        return f"a task in words is compiled by: knotwork seed compile {argv[1]}"
    if argv[:1] == ["seed"] and message.startswith("No such command"):
        return "a seed is run by: knotwork seed run SEED CONTEXTS"
    if argv[:2] == ["seed", "run"] and message.startswith("No such option: --input"):
        return "the contexts stand behind the seed: knotwork seed run SEED CONTEXTS"
    if argv[:1] == ["runs"] and len(argv) == 2 and message.startswith("No such command"):
        return f"one run is shown by: knotwork runs show {argv[1]}"
    named = re.match(r"No such option: --([\w-]+)", message)
    if named and (name := named[1].replace("-", "_")) in (
        "model",
        "system",
        "temperature",
        "stop",
        "type",
        "retries",
        "timeout",
    ):
        return f'{name} is said in the script, for each call: LLM("...", {name}=...)'
    return ""


_QUOTED = {
    "answer": 'an instruction of several words stands in quotes: knotwork answer "Explain tides"',
    "ask": 'a question of several words stands in quotes: knotwork ask GRAPH "Who meets the most people?"',
    "rank": 'what is wanted is given with --request: knotwork rank ITEMS --request "cafe with drive-thru"',
    "seed": "a task is one file; what it is tried on is given with --example CONTEXTS",
}
_MODELS = {"answer": "the model is named by --llm, that of the judge by --judge-llm"}
_MISSING = {
    "'GRAPH'": 'for example: knotwork ask nx:les_miserables "Who meets the most people?"',
    "'QUESTION'": 'the graph stands first: knotwork ask GRAPH "Who meets the most people?"',
    "'TASK'": "for example: knotwork seed compile task.md --output task.seed.json",
}


def _likely_of_loop(argv: list[str], message: str) -> str:
    """Say what was probably meant of a command that puts a task in words to a model."""
    if message.startswith("Got unexpected extra argument"):
        return _QUOTED[argv[0]]
    if message.startswith("No such option: --model"):
        return _MODELS.get(argv[0], "the model is named by --llm")
    if argv[0] == "ask" and message.startswith("No such option: --graph"):
        return 'the graph stands before the question: knotwork ask GRAPH "Who meets the most people?"'
    if argv[0] == "rank" and message.startswith("No such option: --items"):
        return 'the items stand first: knotwork rank ITEMS --request "cafe with drive-thru"'
    return next((hint for name, hint in _MISSING.items() if message == f"Missing argument {name}"), "")
