"""Good scripts, and what models and people make of them: each corruption is one slip, at a place that a seed chooses."""

import itertools
import random
import re
from collections.abc import Callable, Iterator

__all__ = ["CORRUPTIONS", "GOOD", "SLIPS", "corrupted", "slipped"]

GOOD = [
    """(mood)=LLM("Is this review glad or sad? {(input)}["text"]", type="glad" | "sad")
(dish)=LLM("Which dish does this review name? {(input)}["text"]", max_tokens=10)
(final)=LLM("Write one line for the kitchen: the {(dish)} made a guest {(mood)}.")
""",
    """# cafes
(wanted)=LLM("List the conditions in this request: {(input)}["request"]", type=list)
(5.check)=LLM("Does {(input)}["items"][5]["attributes"] satisfy {(wanted)}? Answer yes or no.", temperature=0)
(final)=LLM("Checks, each \\"yes\\" or \\"no\\": {(5.check)}. Output the best index.", type=int)
""",
    """(labels)=CONST(["crisp", "warm", "cold"])
(moods)=EACH({(input)}["reviews"], LLM("Choose from {(labels)}: {(item)}["text"]", temperature=0.2), on_error=drop)
(final)=LLM("Sum up in a sentence: {(moods)}", system="You are terse.")
""",
    '''(plan)=LLM("""Plan a dinner for {(input)}.
Answer as JSON: {"starter": "...", "main": "..."}""", type=json, retries=3)
(starter)=LLM("How is {(plan)}["starter"] made?", model="small")
(main)=LLM("How is {(plan)}["main"] made?", model="small")
(final)=LLM("Write the evening's card from {(starter)} and {(main)}.")
''',
    """(facts)=CONST({"city": "Rome", "year": 1960, "open": true})
(text)=LLM('Write about {(facts)}["city"] in {(facts)}["year"].', temperature=1, max_tokens=200)
(critic)=LLM('What is wrong with this text? {(text)}')
(final)=LLM('Improve the text {(text)} by this: {(critic)}')
""",
    """(question)=LLM("Rephrase: {(input)}")
(first)=LLM("Answer briefly: {(question)}", temperature=0.7)
(second)=LLM("Answer at length: {(question)}", temperature=0.7)
(judge)=LLM("Which is better?
A: {(first)}
B: {(second)}
Answer \\"A\\" or \\"B\\".", type="A" | "B", system="You are a fair judge.")
(final)=LLM("The judge chose {(judge)}. Say why.")
""",
]

Corruption = Callable[[str, random.Random], str | None]
CORRUPTIONS: dict[str, Corruption] = {}


def corruption(made: Corruption) -> Corruption:
    """Register a corruption under its name."""
    CORRUPTIONS[made.__name__] = made
    return made


def corrupted(times: int, seed: int = 1) -> Iterator[tuple[str, str, str]]:
    """Yield name, the corrupted text and the good one, each corruption of each script up to ``times`` times."""
    for name, corrupt in CORRUPTIONS.items():
        for number, good in enumerate(GOOD):
            seen = {good}
            for turn in range(times):
                text = corrupt(good, random.Random(f"{seed}-{name}-{number}-{turn}"))
                if text is not None and text not in seen:
                    seen.add(text)
                    yield name, text, good


def _one(pattern: str, new: str | Callable[[re.Match[str]], str], text: str, chance: random.Random) -> str | None:
    places = list(re.finditer(pattern, text))
    if not places:
        return None
    found = chance.choice(places)
    return text[: found.start()] + (found.expand(new) if isinstance(new, str) else new(found)) + text[found.end() :]


def _typo(word: str, chance: random.Random) -> str:
    at = chance.randrange(1, len(word)) if len(word) > 1 else 0
    kind = chance.choice(["drop", "swap", "double"])
    if kind == "drop" and len(word) > 3:
        return word[:at] + word[at + 1 :]
    if kind == "swap" and len(word) > 2:
        return word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]
    return word[:at] + word[at] + word[at:]


@corruption
def typo_in_reference(text, chance):
    return _one(r"(?<=\{\()(?!input|item)[a-z.]{3,}(?=\)\})", lambda m: _typo(m[0], chance), text, chance)


@corruption
def typo_in_option(text, chance):
    return _one(r"(?<=, )[a-z_]{4,}(?==)", lambda m: _typo(m[0], chance), text, chance)


@corruption
def typo_in_operation(text, chance):
    return _one(r"(?<=[= ])(?:LLM|CONST|EACH)(?=\()", lambda m: _typo(m[0], chance), text, chance)


@corruption
def lower_case_operation(text, chance):
    return _one(r"(?<==)(?:LLM|CONST|EACH)(?=\()", lambda m: m[0].lower(), text, chance)


@corruption
def missing_closing_quote(text, chance):
    return _one(r"(?<=[.?}])(?:\"\"\"|\"|')(?=[,)])", "", text, chance)


@corruption
def missing_opening_quote(text, chance):
    return _one(r"(?<=LLM\()[\"'](?=\w)", "", text, chance)


@corruption
def missing_parenthesis(text, chance):
    return _one(r"\)(?=\n)", "", text, chance)


@corruption
def missing_comma(text, chance):
    return _one(r",(?= [a-z_]+=| \"(?:warm|cold|year)\"| LLM)", "", text, chance)


@corruption
def missing_equals(text, chance):
    return _one(r"(?<=\))=(?=[A-Z])", lambda m: chance.choice(["", " ", ": ", ":=", " -> "]), text, chance)


@corruption
def missing_head_parentheses(text, chance):
    return _one(
        r"(?m)^\(([a-z]+)\)=",
        lambda m: chance.choice(["{}=", "{} = ", "[{}]=", "({}=", "{})="]).format(m[1]),
        text,
        chance,
    )


@corruption
def unescaped_quotes(text, chance):
    return _one(r"(?m)^.*\\\".*$", lambda m: m[0].replace('\\"', '"'), text, chance)


@corruption
def fence(text, chance):
    return f"```{chance.choice(['', 'lwt', 'text', 'python'])}\n{text}```\n"


@corruption
def prose(text, chance):
    before = chance.choice(["Sure! Here is the script:\n\n", "Here's the plan.\nIt has a few steps:\n", "**Script**\n"])
    return before + text + chance.choice(["", "\nLet me know if it helps!\n", "Good luck.\n"])


@corruption
def bullets(text, chance):
    mark = chance.choice(["- ", "* ", "• ", "1. ", "Step 1: "])
    return re.sub(r"(?m)^(?=\([\w.]+\)=)", mark, text)


@corruption
def smart_quotes(text, chance):
    return _one(r"(?<=LLM\()\"([^\"\n\\]+)\"(?=[,)])", "\u201c\\1\u201d", text, chance)


@corruption
def backticks(text, chance):
    return _one(r"(?<=LLM\()\"([^\"{]+|[^\"]*\}[^\"\[]*)\"(?=[,)])", r"`\1`", text, chance)


@corruption
def step_twice(text, chance):
    return _one(r"(?m)^\(.*\)\n", r"\g<0>\g<0>", text, chance)


@corruption
def misplaced_accessor(text, chance):
    return _one(
        r"\{\((\w+)\)\}\[\"(\w+)\"\]",
        lambda m: chance.choice(['{{({0}["{1}"])}}', '{{({0})["{1}"]}}', "{{({0}.{1})}}"]).format(m[1], m[2]),
        text,
        chance,
    )


@corruption
def spaced_reference(text, chance):
    return _one(
        r"\{\((\w+)\)\}", lambda m: chance.choice(["{{( {0} )}}", "{{({0}}}", "{{ ({0}) }}"]).format(m[1]), text, chance
    )


@corruption
def other_braces(text, chance):
    return _one(
        r"\{\((\w+)\)\}",
        lambda m: chance.choice(["{{{{{0}}}}}", "{{{0}}}", "${{{0}}}", "{{{{({0})}}}}"]).format(m[1]),
        text,
        chance,
    )


@corruption
def quoted_name(text, chance):
    return _one(r"(?<=\")([^\"\n]*)\{\((\w+)\)\}(?=[^\"\n\[]*\"[,)])", r'\1{("\2")}', text, chance)


@corruption
def f_string(text, chance):
    return _one(r"(?<=LLM\()(?=[\"'])", "f", text, chance)


@corruption
def named_prompt(text, chance):
    return _one(r"(?<=LLM\()(?=[\"'])", "prompt=", text, chance)


@corruption
def joined_with_plus(text, chance):
    return _one(r"(?<=\")([^\"\n]+?)\{\((\w+)\)\}([^\"\n\[][^\"\n]*)\"(?=[,)])", r'\1" + {(\2)} + "\3"', text, chance)


@corruption
def colon_for_equals(text, chance):
    return _one(r"(?<=, )([a-z_]+)=", r"\1: ", text, chance)


@corruption
def semicolon_for_comma(text, chance):
    return _one(r",(?= [a-z_]+=)", ";", text, chance)


@corruption
def semicolons(text, chance):
    return re.sub(r"\)\n", ");\n", text)


@corruption
def bare_choice(text, chance):
    return _one(
        r"type=\"(\w+)\" \| \"(\w+)\"",
        lambda m: chance.choice(
            ["type={0}|{1}", 'type="{0}|{1}"', 'type=["{0}", "{1}"]', 'type="{0}" or "{1}"']
        ).format(m[1], m[2]),
        text,
        chance,
    )


@corruption
def quoted_number(text, chance):
    return _one(r"(?<=(?:ture|kens|ries)=)([\d.]+)", r'"\1"', text, chance)


@corruption
def wrong_closing(text, chance):
    return _one(r"\)(?=\n)", lambda m: chance.choice(["]", "}", "))"]), text, chance)


@corruption
def option_first(text, chance):
    return _one(r"(?<=LLM\()(\"[^\"{\n]+\{\(\w+\)\}[^\"\n\[]*\"), ([a-z_]+=[\w.]+)(?=[,)])", r"\2, \1", text, chance)


@corruption
def comment_behind(text, chance):
    return _one(r"\)(?=\n)", lambda m: chance.choice([")  # what is asked", ") // note", ") -- note"]), text, chance)


@corruption
def spaces_in_id(text, chance):
    return _one(r"(?m)^\(([a-z]{3})([a-z]+)\)=", r"(\1 \2)=", text, chance)


@corruption
def break_after_equals(text, chance):
    return _one(r"(?<=\)=)(?=[A-Z])", "\n  ", text, chance)


SLIPS = {
    "closing_quote": (r"(?<=[^(=,\[\s])(?:\"\"\"|\"|')(?=[,)\s]*(?:[,)|\n]|$))", ""),
    "opening_quote": (r"(?<=[(=])(?:\"\"\"|\"|')(?=[\w{\[])", ""),
    "parenthesis": (r"\)(?=\n|$|, \w+=)", ""),
    "other_bracket": (r"\)(?=\n|$)", "]"),
    "semicolon_at_end": (r"\)(?=\n|$)", ");"),
    "double_braces": (r"\{\((\w+)\)\}", r"{{\1}}"),
    "double_braces_too": (r"\{\((\w+)\)\}", r"{{(\1)}}"),
    "bare_braces": (r"\{\((\w+)\)\}", r"{\1}"),
    "half_a_reference": (r"\{\((\w+)\)\}", r"{(\1}"),
    "key_inside": (r"\{\((\w+)\)\}\[\"(\w+)\"\]", r'{(\1["\2"])}'),
    "option": (r"(?<=, )([a-z_]{2})([a-z_])([a-z_]*)(?==)", r"\1\3"),
    "colon": (r"(?<=, )([a-z_]+)=", r"\1: "),
    "comma": (r",(?= [a-z_]+=)", ""),
    "semicolon": (r",(?= [a-z_]+=)", ";"),
    "double_quotes": (r"\['(\w+)'\]", r'["\1"]'),
    "unescaped": (r"\\\"", '"'),
}
"""Slips by pattern and what stands there instead, for pairs of them at any two places."""

Place = tuple[int, int, str]


def slipped(good: str, most: int, chance: random.Random) -> Iterator[tuple[list[str], str]]:
    """Yield up to ``most`` texts with two slips, each behind the texts that mends may lead to: with any of the slips left."""
    places = [
        (found.start(), found.end(), found.expand(new))
        for pattern, new in SLIPS.values()
        for found in re.finditer(pattern, good)
    ]
    pairs = [(one, two) for one, two in itertools.combinations(places, 2) if one[1] <= two[0] or two[1] <= one[0]]
    for one, two in chance.sample(pairs, min(most, len(pairs))):
        ways = [[[], [place], *([[escaped]] if (escaped := _escaped(place)) != place else [])] for place in (one, two)]
        yield [_with(good, [*a, *b]) for a in ways[0] for b in ways[1]], _with(good, [one, two])


def _escaped(place: Place) -> Place:
    start, end, new = place
    return (start, end, new.replace('"', '\\"') if new.startswith('["') else new)


def _with(text: str, places: list[Place]) -> str:
    for start, end, new in sorted(places, reverse=True):
        text = text[:start] + new + text[end:]
    return text
