"""Other tools that read reviews with a model, for bench_peers: DocETL, LOTUS, instructor with asyncio, promptfoo. All are optional.

    python tests/bench/peers_reviews.py NAME URL [--cache | --resume | --skip-on-error]

runs one of them in the current folder, in a Python that has it and nothing of knotwork: ``reviews.json`` and ``reviews.csv`` have the
reviews, ``URL`` is the model server. Each does it the way that its documentation shows first, with 16 calls at a time and its own retries;
``--cache`` switches on the cache that it has but does not use by default; ``--resume`` goes on with the run before;
``--skip-on-error`` goes on after a row without a valid answer. ``READERS``
reads what it wrote.
"""

import asyncio
import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

__all__ = ["LABELS", "MODEL", "QUIET", "READERS", "VARIANTS", "Outcome", "program", "version"]

LABELS = ("positive", "neutral", "negative")
MODEL = "gpt-4o-mini"
"""A name that every tool knows; the server ignores it."""
AT_ONCE = 16
ASKED = (
    "What does the patient think of the drug? positive: it helped, and the patient would take it again; neutral: it helped in part, or "
    "good and bad effects balance; negative: it did not help, or its side effects were too bad."
)
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_SELF_HOSTED": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "TQDM_MININTERVAL": "1", "HF_HUB_OFFLINE": "1",
}  # fmt: skip
"""Settings under which the tools ask nothing of any other server."""
VARIANTS = {
    "docetl": ("faults", "--skip-on-error"), "lotus": ("kill", "--cache"), "instructor": ("kill", "--cache"),
    "promptfoo": ("kill", "--resume"),
}  # fmt: skip
"""The part of the benchmark for which a tool has an option that is off by default; the caches of DocETL and promptfoo are on."""
PACKAGES = {"docetl": "docetl", "lotus": "lotus-ai", "instructor": "instructor[diskcache]"}
MODULES = {"docetl": "docetl", "lotus": "lotus", "instructor": "instructor"}


class Outcome(NamedTuple):
    """What a tool made of a review: its value, None without one, and the error that its output shows for it."""

    value: str | None
    error: str


def program(name: str, venvs: Path | None) -> list[str] | str:
    """Return the words that start a peer, or the reason why it cannot be started."""
    if name == "promptfoo":
        found = venvs / "promptfoo/node_modules/.bin/promptfoo" if venvs else None
        path = str(found) if found and found.exists() else shutil.which("promptfoo")
        return [path] if path else "promptfoo is not installed (npm install promptfoo)"
    python = venvs / name / "bin/python" if venvs else Path(sys.executable)
    if not python.exists():
        return f"{python} does not exist"
    tried = subprocess.run(
        [python, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec({MODULES[name]!r}) is None)"], cwd="/"
    )
    return (
        f"{PACKAGES[name]} is not installed in {python} (pip install {PACKAGES[name]})"
        if tried.returncode
        else [str(python)]
    )


def version(name: str, words: list[str]) -> str:
    """Return the version of a peer that is there."""
    if name == "promptfoo":
        found = json.loads((Path(words[0]).resolve().parents[2] / "package.json").read_text(encoding="utf-8"))
        return str(found["version"])
    code = f"from importlib.metadata import version; print(version({PACKAGES[name].partition('[')[0]!r}))"
    return subprocess.run([*words, "-c", code], capture_output=True, text=True, check=True, cwd="/").stdout.strip()


def reviews() -> list[dict[str, str]]:
    """Return the reviews: id and text."""
    found: list[dict[str, str]] = json.loads(Path("reviews.json").read_text(encoding="utf-8"))
    return found


def instructor(url: str, cache: bool) -> None:
    """A pydantic model with the labels, the asynchronous client, a semaphore; instructor asks again up to three times in all."""
    import instructor
    from pydantic import BaseModel, Field

    class Review(BaseModel):
        opinion: Literal["positive", "neutral", "negative"] = Field(description=ASKED)

    more: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    if cache:
        from instructor.cache import DiskCache

        more["cache"] = DiskCache(directory="cache")
        shared["cache_namespace"] = "reviews"  # else each client has its own
    client = instructor.from_provider(f"openai/{MODEL}", async_client=True, base_url=url, api_key="k", **more)
    free = asyncio.Semaphore(AT_ONCE)

    async def read(row: dict[str, str]) -> dict[str, str | None]:
        async with free:
            try:
                found = await client.chat.completions.create(
                    response_model=Review, messages=[{"role": "user", "content": f"{ASKED}\n\n{row['text']}"}], **shared
                )  # fmt: skip
            except Exception as error:  # so that one review does not end the run
                return {"id": row["id"], "value": None, "error": repr(error)[:200]}
            return {"id": row["id"], "value": found.opinion, "error": ""}

    async def everything() -> list[dict[str, str | None]]:
        return await asyncio.gather(*map(read, reviews()))

    Path("out.json").write_text(json.dumps(asyncio.run(everything())), encoding="utf-8")


def read_instructor(folder: Path) -> dict[str, Outcome]:
    """Read what ``instructor`` wrote."""
    return {
        row["id"]: Outcome(row["value"], row["error"])
        for row in json.loads((folder / "out.json").read_text(encoding="utf-8"))
    }


def lotus(url: str, cache: bool) -> None:
    """``sem_extract`` over a data frame; the LM's batch size is the number of calls at a time."""
    import lotus
    import pandas as pd
    from lotus.models import LM

    more: dict[str, Any] = {}
    if cache:
        from lotus.cache import CacheConfig, CacheFactory, CacheType

        more["cache"] = CacheFactory.create_cache(CacheConfig(CacheType.SQLITE, 10_000, cache_dir="cache"))
    lotus.settings.configure(
        lm=LM(model=MODEL, max_batch_size=AT_ONCE, api_base=url, api_key="k", **more), enable_cache=cache
    )
    frame = pd.read_csv("reviews.csv")
    frame.sem_extract(["text"], {"opinion": f"positive, neutral or negative. {ASKED}"}).to_csv("out.csv", index=False)


def read_lotus(folder: Path) -> dict[str, Outcome]:
    """Read what ``lotus`` wrote."""
    with (folder / "out.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: Outcome(row.get("opinion") or None, "") for row in csv.DictReader(file)}


def docetl(url: str, skips: bool) -> None:
    """A pipeline with a map whose output has an enum, through the command ``docetl run``."""
    pipeline = {
        "default_model": MODEL,
        "datasets": {"reviews": {"type": "file", "path": "reviews.json"}},
        "operations": [
            {
                "name": "opinion",
                "type": "map",
                "prompt": f"{ASKED}\n\n{{{{ input.text }}}}",
                "output": {"schema": {"opinion": f"enum[{', '.join(LABELS)}]"}},
                "skip_on_error": skips,
            }
        ],
        "pipeline": {
            "steps": [{"name": "read", "input": "reviews", "operations": ["opinion"]}],
            "output": {"type": "file", "path": "out.json", "intermediate_dir": "intermediate"},
        },
    }
    Path("pipeline.yaml").write_text(json.dumps(pipeline), encoding="utf-8")
    if spec := find_spec("litellm"):  # the tokenizers that it brings: nothing is downloaded
        bundled = Path(str(spec.origin)).parent / "litellm_core_utils/tokenizers"
        os.environ["TIKTOKEN_CACHE_DIR"] = str(bundled)
    command = Path(sys.executable).with_name("docetl")
    os.execv(command, [str(command), "run", "pipeline.yaml", "--max-threads", str(AT_ONCE)])


def read_docetl(folder: Path) -> dict[str, Outcome]:
    """Read what ``docetl`` wrote."""
    return {
        row["id"]: Outcome(row.get("opinion"), "")
        for row in json.loads((folder / "out.json").read_text(encoding="utf-8"))
    }


def promptfoo(url: str, resume: bool, path: str) -> None:
    """A test for each row of the CSV file, JSON Schema as the response format, and the assertion ``is-json`` with the same schema."""
    schema = {
        "type": "object", "properties": {"opinion": {"type": "string", "enum": list(LABELS)}}, "required": ["opinion"],
        "additionalProperties": False,
    }  # fmt: skip
    form = {"type": "json_schema", "json_schema": {"name": "review", "strict": True, "schema": schema}}
    config = {
        "prompts": [f"{ASKED}\n\n{{{{text}}}}"],
        "providers": [{"id": f"openai:chat:{MODEL}", "config": {"apiBaseUrl": url, "response_format": form}}],
        "defaultTest": {"assert": [{"type": "is-json", "value": schema}]},
        "tests": "file://reviews.csv",
    }
    Path("promptfooconfig.yaml").write_text(json.dumps(config), encoding="utf-8")
    words = ["eval", "--max-concurrency", "16", "--output", "out.json", "--no-table", "--no-progress-bar", "--no-share"]
    os.execv(path, [path, *words, *(["--resume"] if resume else [])])


def read_promptfoo(folder: Path) -> dict[str, Outcome]:
    """Read what ``promptfoo`` wrote: a value counts if its row passed."""
    found = {}
    for row in json.loads((folder / "out.json").read_text(encoding="utf-8"))["results"]["results"]:
        output = (row.get("response") or {}).get("output")
        value = output.get("opinion") if isinstance(output, dict) else output
        found[row["vars"]["id"]] = Outcome(value, "" if row["success"] else str(row.get("error") or "failed"))
    return found


READERS: Mapping[str, Callable[[Path], dict[str, Outcome]]] = {
    "docetl": read_docetl,
    "lotus": read_lotus,
    "instructor": read_instructor,
    "promptfoo": read_promptfoo,
}


def main() -> None:
    """Run a peer in the current folder."""
    name, url, *more = sys.argv[1:]
    if name == "promptfoo":
        promptfoo(url, "--resume" in more, more[0])
    else:
        {"docetl": docetl, "lotus": lotus, "instructor": instructor}[name](url, bool(more))


if __name__ == "__main__":
    sys.path.pop(0)  # modules of this folder are not the peers
    main()
