"""The second oracle: correct texts of planted tasks with the slips that models make in them, chosen by a seed.

A slip is a function of a text and a source of chance; None where the text has no place for it. None of them takes away what only the
task could give back.
"""

import re
from collections.abc import Callable
from random import Random

from .planted import Task

__all__ = ["PLAN_SLIPS", "SCRIPT_SLIPS", "corrupted"]

Slip = Callable[[str, Random], str | None]
PLAN_SLIPS: dict[str, Slip] = {}
SCRIPT_SLIPS: dict[str, Slip] = {}


def corrupted(task: Task, seed: int, most: int = 3) -> tuple[str, tuple[str, ...]]:
    """Return the task's correct text with one to ``most`` slips, and their names. Any slip is as likely as another."""
    chance = Random(f"{seed} slips {task.number}")
    slips = PLAN_SLIPS if task.is_graph else SCRIPT_SLIPS
    wanted, chosen = chance.randint(1, most), list[str]()
    for name in chance.sample(sorted(slips), len(slips)):
        if len(chosen) < wanted and slips[name](task.correct, chance) not in (None, task.correct):
            chosen.append(name)
    text, made = task.correct, list[str]()
    # What spoils the text as JSON comes behind what is said in it, and what stands around it last: a model writes the plan first.
    for name in sorted(chosen, key=lambda each: (each in SPOILING) + 2 * (each in AROUND)):
        after = slips[name](text, chance)
        if after is not None and after != text:
            text = after
            made.append(name)
    return text, tuple(made)


SPOILING = {"single_quotes", "trailing_comma", "missing_comma", "unclosed", "bare_key", "comment"}
AROUND = {"fence", "prose"}


def plan_slip(made: Slip) -> Slip:
    """Register a slip in a plan."""
    PLAN_SLIPS[made.__name__] = made
    return made


def script_slip(made: Slip) -> Slip:
    """Register a slip in a script."""
    SCRIPT_SLIPS[made.__name__] = made
    return made


def both(made: Slip) -> Slip:
    """Register a slip in either."""
    return script_slip(plan_slip(made))


def typo(word: str, chance: Random) -> str:
    """Return a word with a letter left out, doubled, swapped with the next, or another one."""
    at = chance.randrange(1, len(word))
    return chance.choice(
        [
            word[:at] + word[at + 1 :] if len(word) > 3 else word + word[-1],
            word[:at] + word[at] + word[at:],
            word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :] if word[at] != word[at - 1] else word + "s",
            word[:at] + chance.choice("aeiorst") + word[at + 1 :],
        ]
    )


def _one(pattern: str, new: Callable[[re.Match[str]], str] | str, text: str, chance: Random) -> str | None:
    places = list(re.finditer(pattern, text))
    if not places:
        return None
    found = chance.choice(places)
    return text[: found.start()] + (found.expand(new) if isinstance(new, str) else new(found)) + text[found.end() :]


# In what is said


@plan_slip
def typo_in_command(text, chance):
    words = r"\b(?:DECLARE|FIND|WALK|SELECT|UPDATE|RANK|COUNT|WHERE|LIMIT|DIRECTION|REPLACE|MERGE"
    words += r"|AGGREGATE|COMPUTE|PER|EXCEPT|DISTINCT|FIELDS|JOIN|patterns)\b"
    return _one(words, lambda m: typo(m[0], chance), text, chance)


@plan_slip
def typo_in_variable(text, chance):
    return _one(r"(?<=AS )(?!LIST)[a-z]{4,}|(?<=WITH )[a-z]{4,}", lambda m: typo(m[0], chance), text, chance)


@plan_slip
def typo_in_attribute(text, chance):
    return _one(r"\b(?:entity_type|relation|citations|field|year|age)\b", lambda m: typo(m[0], chance), text, chance)


@plan_slip
def another_attribute(text, chance):
    names = {
        "entity_type": ("type", "entityType"),
        "age": ("ages",),
        "citations": ("citation_count", "cited"),
        "relation": ("rel", "relation_type"),
    }
    return _one(r"\b(?:entity_type|age|citations|relation)\b", lambda m: chance.choice(names[m[0]]), text, chance)


@plan_slip
def typo_in_value(text, chance):
    values = r'(?<=\\")(?:PERSON|PAPER|WROTE|LIVES_IN|biology|geology|optics|poetry)(?=\\")'
    return _one(values, lambda m: typo(m[0], chance), text, chance)


@plan_slip
def value_in_another_case(text, chance):
    return _one(r'(?<=\\")(?:PERSON|PAPER|WROTE|LIVES_IN)(?=\\")', lambda m: m[0].lower(), text, chance)


@plan_slip
def unknown_id(text, chance):
    return _one(r'(?<=id = \\")[A-Z]\w+(?= ?\d*\\")', lambda m: typo(m[0], chance), text, chance)


@plan_slip
def missing_as(text, chance):
    return _one(r" AS (?!LIST)[a-z]+(?=\")", "", text, chance)


@plan_slip
def missing_as_word(text, chance):
    return _one(r" AS (?=(?!LIST)[a-z]+\")", " ", text, chance)


@plan_slip
def other_operators(text, chance):
    return _one(r" AND ", " && ", text, chance) or _one(r"(?<=\w) = ", " == ", text, chance)


@plan_slip
def value_without_quotes(text, chance):
    return _one(r'\\"([A-Za-z_]+)\\"', r"\1", text, chance)


@plan_slip
def unescaped_quotes(text, chance):
    return _one(r'\\"([A-Za-z_]+)\\"', r'"\1"', text, chance)


@plan_slip
def undeclared_key(text, chance):
    return _one(r"(?<=UPDATE )answer", lambda m: chance.choice(["answers", "anwser", "result.answer"]), text, chance)


@plan_slip
def words_of_sql(text, chance):
    return _one(r" BY citations DESC", " ORDER BY citations DESC", text, chance) or _one(
        r"FIND nodes", "MATCH nodes", text, chance
    )


@plan_slip
def plural_or_bare_target(text, chance):
    return _one(r"FIND nodes", lambda m: chance.choice(["FIND node", "FIND", "find Nodes"]), text, chance)


@plan_slip
def dollars_around_a_name(text, chance):
    return _one(r"(?<=WITH )([a-z]+)", r"${\1}", text, chance)


# In the forms of GASL's second edition


@plan_slip
def function_of_sql(text, chance):
    return _one(r"mean(?=\()", lambda m: chance.choice(["avg", "AVG", "average"]), text, chance)


@plan_slip
def typo_in_aggregate_function(text, chance):
    return _one(r"mean(?=\()", lambda m: typo(m[0], chance), text, chance)


@plan_slip
def pattern_of_cypher(text, chance):
    return _one(r"FIND patterns(?= \()", lambda m: chance.choice(["MATCH", "FIND pattern", "FIND"]), text, chance)


@plan_slip
def label_without_colon(text, chance):
    return _one(r"(?<=-\[):(?=WROTE)", "", text, chance)


@plan_slip
def group_by(text, chance):
    return _one(r"(?<=AGGREGATE people) BY", " GROUP BY", text, chance)


@plan_slip
def distinct_behind_fields(text, chance):
    return _one(r"SELECT DISTINCT (\w+) FIELDS", r"SELECT \1 FIELDS DISTINCT", text, chance)


@plan_slip
def other_word_for_on(text, chance):
    return _one(r" ON (?=id|target)", lambda m: chance.choice([" BY ", " USING "]), text, chance)


@plan_slip
def parenthesis_missing(text, chance):
    return _one(r"(?<=year)\)(?= AS)", "", text, chance)


# In the document


@plan_slip
def missing_why(text, chance):
    return re.sub(r' "why": "[^"]*",\n', "", text)


@plan_slip
def missing_plan_id(text, chance):
    return re.sub(r' "plan_id": "[^"]*",\n', "", text)


@plan_slip
def another_key(text, chance):
    return _one(
        r'"(?:why|commands|plan_id)"(?=:)',
        lambda m: {'"why"': '"reason"', '"commands"': '"steps"', '"plan_id"': '"id"'}[m[0]],
        text,
        chance,
    )


@plan_slip
def a_key_too_many(text, chance):
    return text.replace("{", '{"confidence": 0.9,', 1)


@plan_slip
def single_quotes(text, chance):
    return _one(r'"(why|plan_id|commands)"', r"'\1'", text, chance)


@plan_slip
def bare_key(text, chance):
    return _one(r'"(why|plan_id|commands)"', r"\1", text, chance)


@plan_slip
def trailing_comma(text, chance):
    return re.sub(r'"\n \]', '",\n ]', text)


@plan_slip
def missing_comma(text, chance):
    return _one(r'(?<="),(?=\n)', "", text, chance)


@plan_slip
def unclosed(text, chance):
    return re.sub(r"\s*\}\s*\Z", "", text) if chance.random() < 0.5 else re.sub(r"\s*\]\s*\}\s*\Z", "", text)


@plan_slip
def comment(text, chance):
    return _one(r",(?=\n)", lambda m: chance.choice([", // as asked", ", /* so */"]), text, chance)


@both
def fence(text, chance):
    return f"```{chance.choice(['', 'json', 'text'])}\n{text}\n```"


@both
def prose(text, chance):
    before = chance.choice(["Sure! Here is what you asked for:\n\n", "This should work:\n"])
    return before + text + chance.choice(["", "\n\nLet me know if it helps!"])


# In scripts


@script_slip
def typo_in_reference(text, chance):
    return _one(r"(?<=\{\()(?:fitting|best)(?=\)\})", lambda m: typo(m[0], chance), text, chance)


@script_slip
def typo_in_item_key(text, chance):
    return _one(r"(?<=\[')(?:open|price|tags|rating|index)(?='\])", lambda m: typo(m[0], chance), text, chance)


@script_slip
def typo_in_input_key(text, chance):
    return _one(r'(?<=\[")items(?="\])', lambda m: typo(m[0], chance), text, chance)


@script_slip
def typo_in_function(text, chance):
    return _one(r"max(?=\()", lambda m: chance.choice(["maxx", "maximum", "Max"]), text, chance)


@script_slip
def typo_in_operation(text, chance):
    return _one(r"(?<==)EXPR", lambda m: chance.choice(["EXPRESSION", "Expr", "EXP", "EXPRR"]), text, chance)


@script_slip
def typo_in_given_name(text, chance):
    return _one(r"(?<=, )(?:fitting|best|items)(?==)", lambda m: typo(m[0], chance), text, chance)


@script_slip
def missing_quote(text, chance):
    return _one(r'(?<=[\])])"(?=, )', "", text, chance)


@script_slip
def missing_parenthesis(text, chance):
    return _one(r"\)(?=\n)", "", text, chance)


@script_slip
def c_operators(text, chance):
    return _one(r" and ", " && ", text, chance)


@script_slip
def attributes_by_points(text, chance):
    return _one(r"i\['(\w+)'\]", r"i.\1", text, chance)


@script_slip
def other_braces(text, chance):
    return _one(r"\{\((fitting|best)\)\}", r"{{\1}}", text, chance)


@script_slip
def bullets(text, chance):
    return re.sub(r"(?m)^(?=\(\w+\)=)", "- ", text)


@script_slip
def double_quotes_inside(text, chance):
    return _one(r"i\['(\w+)'\]", r'i["\1"]', text, chance)
