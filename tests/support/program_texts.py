"""The texts of random GASL programs that are given as plain data."""

import json
from typing import Any

__all__ = ["text_of"]


def path_text(path: str) -> str:
    return ".".join(f"`{part}`" if part in ("n", "by") else part for part in path.split("."))


def value_text(value: Any) -> str:
    match value:
        case ("field", path):
            return path_text(path)
        case ("const", constant):
            return json.dumps(constant, ensure_ascii=False)
        case ("var", name, _):
            return f"${{{name}}}"
        case ("neg", inner):
            return f"-({value_text(inner)})"
        case ("len", inner):
            return f"LEN {value_text(inner)}" if inner[0] == "field" else f"LEN ({value_text(inner)})"
        case ("bin", sign, left, right):
            return f"({value_text(left)}) {sign} ({value_text(right)})"
        case ("if", condition, left, right):
            return f"if({condition_text(condition)}, {value_text(left)}, {value_text(right)})"
    return f"{value[1]}({', '.join(map(value_text, value[2]))})"


def condition_text(condition: Any) -> str:
    match condition:
        case ("cmp", operator, left, right):
            return f"{value_text(left)} {operator} {value_text(right)}"
        case ("null", negated, left):
            return f"{value_text(left)} IS {'NOT ' if negated else ''}NULL"
        case ("in", negated, left, constants):
            listed = ", ".join(json.dumps(each, ensure_ascii=False) for each in constants)
            return f"{value_text(left)} {'NOT ' if negated else ''}IN ({listed})"
        case ("not", inner):
            return f"NOT ({condition_text(inner)})"
        case ("quantified", which, path, operator, constant):
            return f"{which} {path_text(path)} {operator} {json.dumps(constant, ensure_ascii=False)}"
        case ("increasing", path):
            return f"INCREASING {path_text(path)}"
    return f" {condition[0].upper()} ".join(f"({condition_text(each)})" for each in condition[1])


def named(column: Any) -> str:
    value, name = column
    return value_text(value) if name is None else f"{value_text(value)} AS {name}"


def listed(values: list[Any]) -> str:
    return ", ".join(map(value_text, values))


def sorting(by: list[Any]) -> str:
    return ", ".join(value_text(value) + (" DESC" if descending else "") for value, descending in by)


def node_text(part: Any) -> str:
    properties = ", ".join(f"{path_text(name)}: {json.dumps(value)}" for name, value in part["properties"].items())
    labels = ":" + "|".join(part["labels"]) if part["labels"] else ""
    return f"({part['name'] or ''}{labels}{' {' + properties + '}' if properties else ''})"


def edge_text(part: Any) -> str:
    labels = ":" + "|".join(part["labels"]) if part["labels"] else ""
    inside = f"[{part['name'] or ''}{labels}]" if part["name"] or labels else ""
    return {"out": f"-{inside}->", "in": f"<-{inside}-", "either": f"-{inside}-"}[part["direction"]]


def pattern_text(pattern: list[Any]) -> str:
    return "".join(edge_text(part) if at % 2 else node_text(part) for at, part in enumerate(pattern))


def text_of(command: Any) -> str:
    """A command as GASL."""

    def option(word: str, name: str, text: Any = str) -> str:
        value = command.get(name)
        return "" if value is None or value == [] else f" {word} {text(value)}"

    where, via = option("WHERE", "where", condition_text), option("VIA", "via", condition_text)
    limit = option("LIMIT", "limit") + option("PER", "per", listed)
    columns = lambda name: ", ".join(map(named, command.get(name) or []))  # noqa: E731
    by = f" BY {columns('by')}" if command["do"] in ("count", "aggregate") and command.get("by") else ""
    pairs = ", ".join(value_text(a) + ("" if a == b else f" = {value_text(b)}") for a, b in command.get("on") or [])
    match command["do"]:
        case "find":
            body = f"FIND {command['kind']}{where}{option('ORDER BY', 'order', sorting)}{limit}"
        case "patterns":
            patterns = ", ".join(map(pattern_text, command["patterns"]))
            body = f"FIND patterns {patterns}{where}{option('ORDER BY', 'order', sorting)}{limit}"
        case "paths":
            ends = option("FROM", "start", lambda c: f"({condition_text(c)})") + option(
                "TO", "end", lambda c: f"({condition_text(c)})"
            )
            shortest = " SHORTEST" if command.get("shortest") else ""
            shortest += "" if command.get("count") is None else f" {command['count']}"
            shortest += option("BY", "cost", value_text)
            rest = option("DIRECTION", "direction") + option("LIMIT", "limit")
            body = f"FIND paths{ends}{via}{where}{option('MAXLEN', 'most')}{shortest}{rest}"
        case "cycles":
            body = f"FIND cycles{via}{where} MAXLEN {command['most']}{option('LIMIT', 'limit')}"
        case "walk":
            trace = " TRACE" if command.get("trace") else ""
            body = f"WALK {command['from']}{via} DEPTH {command['depth']} DIRECTION {command['direction']}{trace}"
        case "measure":
            on = option("ON", "edges")
            body = f"MEASURE {command.get('from') or 'graph'}{on} USING {command['algorithm']}"
        case "subgraph":
            body = f"SUBGRAPH {command['from']} RADIUS {command['radius']}"
        case "connect":
            body = f"CONNECT {command['left']} TO {command['right']}{via}"
        case "select":
            fields = f" FIELDS {columns('fields')}" if command.get("fields") else ""
            sample = option("SAMPLE", "sample")
            body = f"SELECT {'DISTINCT ' if command.get('distinct') else ''}{command['from']}{fields}{where}{sample}"
        case "unnest":
            body = f"UNNEST {command['from']} BY {named(command['by'])}"
        case "count":
            body = f"COUNT {command['from']}{by}"
        case "aggregate":
            made = []
            for each in command["compute"]:
                inside = "" if each["value"] is None else value_text(each["value"])
                share = "" if each["share"] is None else f", {each['share']}"
                made.append(
                    f"{each['function']}({'DISTINCT ' if each['distinct'] else ''}{inside}{share}) AS {each['name']}"
                )
            body = f"AGGREGATE {command['from']}{by} COMPUTE {', '.join(made)}"
        case "rank":
            body = f"RANK {command['from']} BY {sorting(command['by'])}{limit}"
        case "join":
            name = "" if command.get("name") is None else f" AS {command['name']}"
            outer = "LEFT " if command.get("outer") else ""
            body = (
                f"{outer}JOIN {command['left']} WITH {command['right']}{name} ON {pairs}{option('SIMILAR', 'similar')}"
            )
        case kind:
            on = f" ON {pairs}" if pairs else ""
            body = f"{kind.upper()} {command['left']} WITH {command['right']}{on}"
    return f"{body} AS {command['into']}"
