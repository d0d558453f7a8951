"""The page of the HTTP API, generated from the server's OpenAPI document, which the server also uses for validation."""

import ast
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

__all__ = ["page", "written_out"]

Json = dict[str, Any]

_STREAM = "text/event-stream"
_METHODS = ("get", "post", "put", "patch", "delete")

_START = """\
`knotwork serve` offers `knotwork answer`, `knotwork run` and `knotwork eval` over HTTP. It requires the extra `server`
(`pip install "knotwork[server]"`) and listens on `http://127.0.0.1:8000` (`--host` and `--port` change this address). It stores
answers in an SQLite file, so that clients can fetch them after a restart; [several servers](#several-servers) share a PostgreSQL
database instead. These commands start the server and request an answer:

```sh
knotwork serve --llm openai:gpt-4o-mini
curl -s localhost:8000/lab/generate-answer -H 'content-type: application/json' \\
  -d '{"instruct": "Explain tides", "resp_format": "two sentences", "eval_crit": "names the moon"}'
```

The server provides its OpenAPI 3.1 document at `/openapi.json`, with an example of each request and response. This page is
generated from it.
"""

_KEYS = """\
Without keys the server accepts only requests from its own machine. `knotwork serve --add-key NAME` creates a key and prints the
key once; only a hash of the key is stored. If a key exists, every request except `GET /healthz`, `GET /openapi.json` and the
files of the Lab page needs the header

```text
Authorization: Bearer kw_...
```

A key has access only to its own runs. `--remove-key NAME` removes a key; requests with this key are then refused. When the last
key is removed, a running server refuses all requests that need a key. After a restart, the server accepts requests from its own
machine without a key.

**Behind a proxy, add a key before the proxy is started.** A proxy on the same machine (nginx, Caddy, a tunnel) makes each request of
the network look like one of this machine. Without keys, the server and `knotwork mcp --http` therefore refuse requests with the headers
`Forwarded`, `X-Forwarded-*`, `X-Real-IP`, `Via` and similar (403, `forwarded-request`), also for `/healthz`. They can't recognise a
proxy that adds no such header; nginx adds none unless `proxy_set_header` says so.
"""

_SEVERAL = """\
`--history postgresql://HOST/DATABASE` stores the answers in a PostgreSQL database (extra `postgres`) instead of a file. Servers
with the same database serve as one behind a load balancer: an answer that one server has begun is listed, fetched, followed,
cancelled and deleted at each of them. A request can go to any server; no client needs to stay at one.

- **Following.** The server that runs an answer sends all of its events. Another server looks at the database every 0.5 s, and sends
  only the events for the beginning, the iterations and the end. The numbers of the events are the same, so `Last-Event-ID` is valid
  at each server. If an answer is deleted, the last event at another server is `problem` with `no-such-run`.
- **Cancelling and deleting.** The request is stored in the database; the server that runs the answer sees it within about 0.5 s. A
  `DELETE` returns when the answer is deleted, or after 12 s. Other servers do not find the answer from the beginning.
- **Servers that stop.** A server renews a lease every 5 s, and the lease expires after 15 s, by the database's clock. When a server
  is killed, its answers have the status `running` until its lease has expired, and then `interrupted`; their finished iterations
  remain. Answers of other servers are not affected. A server that ends in order ends its answers first.
- **If the database can't be reached**, requests that need it get the problem `history-unavailable`, and streams of answers at other
  servers send only comments. Active answers continue, and are stored as a whole when the database can be used again, or at their
  end. If that fails too, the response contains a warning. For 15 s after such an interruption, a server does not regard others as
  stopped, because they may not have been able to renew their leases. If only one server loses its connection to the database for
  more than 15 s, the others report its answers as `interrupted` until it has stored them again.
- **Credentials.** A password in the URL is refused, because other users of the machine can read command lines. Set `PGPASSWORD` or
  use `~/.pgpass`. Messages contain the URL without its password and its query.
- **Database.** The tables `knotwork_runs_1`, `knotwork_iterations_1`, `knotwork_servers_1` and `knotwork_evaluations_1` are created
  if they are missing; several servers may start at the same time. The role needs `SELECT`, `INSERT`, `UPDATE` and `DELETE` on them,
  and `CREATE` for the first start.
  A server opens at most four connections. A connection pool such as pgbouncer may be in transaction mode. A server does
  not start without the database.
- **What is not shared.** The limits on requests and parallel runs hold for each server. `--keep-runs` counts the stored answers of
  a key at all servers; give all servers the same number. Scripts are not stored, and end with their connection. Evaluations end with
  their connection, too; a finished or interrupted evaluation is stored, and found at each server. Keys, models and
  templates belong to each server: start all servers with the same options and with the same key file (`--keys`), because answers
  belong to the key that is stored there. Without keys, all answers have the same owner, and a server accepts requests only from its
  own machine, and none through a load balancer.

This example has two servers on one machine behind nginx. The nginx configuration has not been tried.

```sh
knotwork serve --keys keys.json --add-key NAME
export PGPASSWORD=...
for port in 8001 8002; do
  knotwork serve --llm openai:gpt-4o-mini --port $port --keys keys.json --history postgresql://knotwork@db.example/knotwork &
done
```

```nginx
upstream knotwork {
    server 127.0.0.1:8001;
    server 127.0.0.1:8002;
}
server {
    listen 80;
    location / {
        proxy_pass http://knotwork;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $http_host;  # the servers compare it with the origin of a web page
        proxy_read_timeout 700s;           # above --time-limit: a request without a stream waits for its answer
    }
}
```

The servers tell nginx not to buffer streams (`X-Accel-Buffering: no`), and send a comment every 15 s. `GET /healthz` is 503 while a
server shuts down.
"""

_LIMITS = """\
These are the default limits for clients; options of [`knotwork serve`](cli.md#knotwork-serve) change them. `GET /lab/about`
returns the actual limits of a server.
"""

_STREAMS = """\
A stream is one response of the type `text/event-stream`, in the format of the browsers' `EventSource`. Each event has an `id`
(its number, from 1), an `event` (its name) and `data` (one line of JSON). The stream of an answer begins with the event `run`,
which contains the id of the run. The [events of the run](events.md) follow as they occur. The last event is `result` or
`problem`; it contains the object that the endpoint without a stream returns. Lines that begin with `:` keep the connection open
and have no content. A client that reads too slowly gets the event `gap` with the numbers of the missing events. If a client
disconnects, a script or an evaluation that it started is cancelled, but an answer continues. `GET /lab/runs/{id}/events` sends
the events of the
answer again, either all events or those after `Last-Event-ID`.

| event only in streams | data |
|---|---|
| `run` | `run` (the id), `created`, `model`, `instruct`, `iter_max`, `score_threshold` |
| `gap` | `from`, `to`: the first and the last number that are missing |
| `result` | the response of the endpoint without a stream |
| `problem` | the problem document |

```text
event: run
data: {"event":"run","run":"019a5c1e7d3b4f0a9c2e61d85b7f3a10","created":"2026-01-31T09:26:53.589+00:00","model":"default", ...}
id: 1

event: answer.started
data: {"event":"answer.started","at":0.002,"step":"","iter_max":3,"score_threshold":0.8,"attempts":1}
id: 2

...

event: iteration.finished
data: {"event":"iteration.finished","at":4.201,"step":"","iteration":1,"score":0.9,"accepted":true,"best":true, ...}
id: 9

event: answer.finished
data: {"event":"answer.finished","at":4.202,"step":"","status":"accepted","score":0.9,"seconds":4.2,"reason":""}
id: 10

event: result
data: {"final_answer":"Quantum computing is like...","iterations":[ ... ],"success":true,"total_iterations":1, ...}
id: 11
```
"""

_PROBLEMS = """\
The response to a failed request is a problem document (RFC 9457, `application/problem+json`). `type`, `title` and `status` are
always present and identify the kind of problem. `detail` describes the particular problem for a person; programs should use
`type`:
"""


_ANYWHERE = """
Each endpoint lists its own problems. The following statuses have the same meaning for all endpoints:
"""

_MANY = 4
"""Number of endpoints with the same problem from which it is described once for all."""


def page(
    document: Json, made: str, limits: Mapping[str, tuple[str, str]], problems: Sequence[tuple[str, int, str]]
) -> str:
    """Return the page of OpenAPI ``document``.

    ``made`` is its second line, ``limits`` by name their value and meaning, ``problems`` type, status and title of each.
    """
    operations = list(_operations(document))
    lines = ["# HTTP API\n", made, _START, "| endpoint | |", "|---|---|"]
    lines += [f"| [`{name}`](#{_anchor(name)}) | {_cell(each['summary'])} |" for name, each in operations]
    lines += ["| `GET /lab` | The Lab page for browsers |", "| `GET /openapi.json` | The OpenAPI document |"]
    lines += [
        "\n## Keys\n",
        _KEYS.rstrip("\n"),
        "\n## Several servers\n",
        _SEVERAL.rstrip("\n"),
        "\n## Limits\n",
        _LIMITS,
        "| limit | | meaning |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {value} | {_cell(meaning)} |" for name, (value, meaning) in limits.items()]
    lines += ["\n## Streams\n", _STREAMS.rstrip("\n")]
    common = _common(operations)
    for name, operation in operations:
        lines += _operation(document, name, operation, common)
    lines += _objects(document)
    lines += ["\n## Problems\n", _PROBLEMS, "| `urn:knotwork:problem:` | status | title |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {status} | {_cell(title)} |" for name, status, title in sorted(problems, key=itemgetter(1, 0))
    ]
    lines += [
        _ANYWHERE,
        "| status | |",
        "|---|---|",
        *(f"| {status} | {_cell(text)} |" for status, text in common.items()),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _common(operations: Sequence[tuple[str, Json]]) -> dict[str, str]:
    """Return the statuses of problems that mean the same in many endpoints, and what they mean there."""
    told = Counter(
        (status, answer.get("description", ""))
        for _, each in operations
        for status, answer in each["responses"].items()
    )
    return dict(sorted(each for each, many in told.items() if many >= _MANY and each[0] >= "4"))


def written_out(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yield name, status and title of every problem that the modules below ``folder`` raise as it stands there."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Problem":
                match [argument.value for argument in node.args[:3] if isinstance(argument, ast.Constant)]:
                    case [str(name), int(status), str(title)]:
                        yield name, status, title


def _operations(document: Json) -> Iterator[tuple[str, Json]]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                shared = item.get("parameters", [])
                yield (
                    f"{method.upper()} {path}",
                    {**item[method], "parameters": [*shared, *item[method].get("parameters", [])]},
                )


def _anchor(heading: str) -> str:
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _operation(document: Json, name: str, operation: Json, common: Mapping[str, str]) -> list[str]:
    lines = [f"\n## {name}\n", operation["summary"].rstrip(".") + "."]
    if text := operation.get("description"):
        lines.append("\n" + text.strip())
    if parameters := operation["parameters"]:
        lines += ["\n| parameter | in | type | default | meaning |", "|---|---|---|---|---|"]
        for each in (_seen(document, one) for one in parameters):
            kind = each["schema"]
            cells = (
                f"`{each['name']}`",
                each["in"],
                _type(kind),
                _default(kind, each.get("required", False)),
                _cell(each.get("description", "")),
            )
            lines.append(f"| {' | '.join(cells)} |")
    for kind, media in _seen(document, operation.get("requestBody", {})).get("content", {}).items():
        lines += [f"\nThe request, `{kind}`: {_type(media['schema'])}.", *_examples(document, media)]
    lines += ["\n| status | content | |", "|---|---|---|"]
    answers = {status: _seen(document, answer) for status, answer in sorted(operation["responses"].items())}
    anywhere = [status for status, answer in answers.items() if common.get(status) == answer.get("description")]
    for status, answer in answers.items():
        if status not in anywhere:
            told = ", ".join(f"`{kind}`" for kind in answer.get("content", {}))
            lines.append(f"| {status} | {told} | {_cell(_description(answer))} |")
    if anywhere:
        lines.append(f"| {', '.join(anywhere)} | `application/problem+json` | [common problems](#problems) |")
    for status, answer in answers.items():
        if status.startswith("2"):
            for kind, media in answer.get("content", {}).items():
                shape = _type(media["schema"]) if kind != _STREAM and media.get("schema") else ""
                lines += [f"\n{status}, `{kind}`{f': {shape}' if shape else ''}.", *_examples(document, media)]
    return lines


def _description(answer: Json) -> str:
    """Return the description of a response; FastAPI's default text counts as none."""
    text = str(answer.get("description", ""))
    return "" if text == "Successful Response" else text


def _seen(document: Json, value: Json) -> Json:
    """Return what ``value`` refers to, or itself."""
    while "$ref" in value:
        found: Any = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        value = found
    return value


def _examples(document: Json, media: Json) -> list[str]:
    """Return the first example as a block."""
    named = [_seen(document, each).get("value") for each in media.get("examples", {}).values()]
    schema = _seen(document, media.get("schema", {}))
    found = [
        value
        for value in ([media["example"]] if "example" in media else []) + named + schema.get("examples", [])
        if value is not None
    ]
    if not found:
        return []
    if isinstance(found[0], dict) and set(found[0]) == {"event", "data", "id"}:  # of a stream: as it goes over the wire
        return ["\n```text", *(f"{name}: {value}" for name, value in found[0].items()), "```"]
    return ["\n```json", json.dumps(found[0], indent=2, ensure_ascii=False), "```"]


def _objects(document: Json) -> list[str]:
    lines = ["\n## Objects"]
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        if "properties" not in schema:
            continue
        lines += [f"\n### {name}\n"]
        if text := schema.get("description"):
            lines += [_words(text), ""]
        lines += ["| field | type | default | meaning |", "|---|---|---|---|"]
        required = set(schema.get("required", ()))
        for field, kind in schema["properties"].items():
            lines.append(
                f"| `{field}` | {_type(kind)} | {_default(kind, field in required)} | {_cell(_words(_field_description(document, kind)))} |"
            )
    return lines


def _field_description(document: Json, schema: Json) -> str:
    return str(
        schema.get("description") or (_seen(document, schema).get("description", "") if "$ref" in schema else "")
    )


def _words(text: str) -> str:
    """Return prose of a docstring as Markdown."""
    return text.strip().replace("``", "`")


def _type(schema: Json) -> str:
    """Return the values that ``schema`` allows, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_anchor(name)})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_type(each) for each in schema[several])
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return _type(schema["allOf"][0])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(_type({**schema, "type": each}) for each in kind)
    if kind == "array":
        inner = _type(schema["items"]) if schema.get("items") else "anything"
        many = _bounds(schema, "minItems", "maxItems")
        return f"list, {many}of {inner}" if many else f"list of {inner}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object, name to {_type(schema['additionalProperties'])}"
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "null": "null",
    }
    text = words.get(str(kind), str(kind))
    if numbers := _bounds(schema, "minimum", "maximum"):
        text += f", {numbers.rstrip()}"
    if characters := _bounds(schema, "minLength", "maxLength"):
        text += f", {characters}characters"
    return f"{text} `{schema['pattern']}`" if "pattern" in schema else text


def _bounds(schema: Json, low: str, high: str) -> str:
    whole = schema.get("type") != "number"
    least, most = (f"{int(schema[key]) if whole else schema[key]:,}" if key in schema else "" for key in (low, high))
    if least and most:
        return f"{least} to {most} "
    return f"at most {most} " if most else f"at least {least} " if least else ""


def _default(schema: Json, required: bool) -> str:
    if "default" in schema:
        return f"`{json.dumps(schema['default'], ensure_ascii=False)}`"
    return "required" if required else ""
