"""The URL of a graph database: ``ladybug:PATH`` or ``bolt://user@host:7687/db``, with options after ``?``."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import field, frozen

from ...lang.diagnostic import nearest
from ..graph import AdapterError
from ..postgres import has_password, without_password

BOLT_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
SCHEMES = ("ladybug", *BOLT_SCHEMES)
MOST_PULLED = 2_000_000
"""Default maximum number of nodes and edges that are copied into memory for a command that the database does not answer."""

_OPTIONS = ("label", "relation", "ids", "id", "pull")


def is_database(source: Any) -> bool:
    """Return whether the source of a graph is the URL of a graph database."""
    if not isinstance(source, str):
        return False
    scheme, colon, rest = source.partition(":")
    return bool(colon) and (scheme == "ladybug" or (scheme in BOLT_SCHEMES and rest.startswith("//")))


@frozen
class Address:
    """The parts of a URL. ``name`` is the URL without options and without a password.

    ``label`` and ``relation`` are the attributes that contain the label of a node and the relation of an edge ("": none).
    ``id`` is the property that contains the id of a node ("": the table's primary key, or the server's element id). If
    ``prefixed``, ids begin with the label. ``pull`` is the maximum number of nodes and edges that are copied into memory.
    """

    scheme: str
    name: str
    path: str = ""
    host: str = ""
    port: int | None = None
    user: str = field(default="", repr=False)
    database: str = ""
    label: str = "label"
    relation: str = "relation"
    id: str = ""
    prefixed: bool = False
    pull: int = MOST_PULLED


def parse_address(url: str) -> Address:
    """Return the parts of the URL of a graph database. Raises ``AdapterError``; the message never contains a password."""
    scheme = url.partition(":")[0]
    if scheme == "ladybug":
        rest = url.partition(":")[2]
        path, mark, query = rest.rpartition("?")
        if not mark:
            path, query = rest, ""
        if not path:
            raise AdapterError("ladybug: has no path", hint="write ladybug:PATH, the file of the database")
        return Address(scheme, f"ladybug:{path}", path, **_options(query, f"ladybug:{path}"))
    name = without_password(url)
    if has_password(url):
        raise AdapterError(
            f"{name}: the URL contains a password",
            hint="remove it, and set KNOTWORK_GRAPH_PASSWORD in the environment",
        )
    try:
        parts = urlsplit(url)
        host, port, user = parts.hostname or "", parts.port, unquote(parts.username or "")
    except ValueError:
        raise AdapterError(f"{name}: not a URL", hint="write bolt://user@host:7687/database") from None
    database = unquote(parts.path.strip("/"))
    if not host or "/" in database:
        raise AdapterError(f"{name}: not the URL of a database", hint="write bolt://user@host:7687/database")
    return Address(scheme, name, host=host, port=port, user=user, database=database, **_options(parts.query, name))


def _options(query: str, name: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    unusable = "id" if name.startswith("ladybug:") else "ids"
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise AdapterError(
            f"{name}: the options behind ? are not readable", hint="write ?name=value&name=value"
        ) from None
    for option, value in pairs:
        if option not in _OPTIONS:
            near = nearest(option, _OPTIONS)
            hint = f"did you mean {near}?" if near else f"the options are {', '.join(_OPTIONS)}"
            raise AdapterError(f"{name}: unknown option {option!r}", hint=hint)
        if option == unusable:
            why = "the primary keys are the ids" if unusable == "id" else "id=NAME names the property with the ids"
            raise AdapterError(f"{name}: {option} has no meaning here: {why}", hint=f"remove {option}")
        if option == "pull":
            if not (value.isascii() and value.isdigit()):
                raise AdapterError(f"{name}: pull={value!r} is not a number", hint="write pull=2000000")
            made["pull"] = int(value)
        elif option == "ids":
            if value not in ("key", "label"):
                raise AdapterError(
                    f"{name}: ids={value!r} is unknown",
                    hint="write ids=label for ids such as Person:1, or ids=key for the keys alone",
                )
            made["prefixed"] = value == "label"
        else:
            made[option] = value
    if made.get("label", "label") in ("id", "degree", "in_degree", "out_degree"):
        raise AdapterError(f"{name}: label={made['label']!r} is a computed field of nodes", hint="choose another name")
    if made.get("relation", "relation") in ("source", "target", "key"):
        raise AdapterError(f"{name}: relation={made['relation']!r} is a field of edges", hint="choose another name")
    return made
