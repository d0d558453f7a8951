"""The catalogue of diagnostics: every code, what it means, why it matters, a text that has it and one that doesn't.

``docs/reference/rules.md`` is made from it, and a test reads every example. Who finds a fault (``lang.parse`` or
``lang.linter``) makes no difference to who meets it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from attrs import frozen

from .diagnostic import Severity

__all__ = ["RULES", "Rule"]


@frozen
class Rule:
    """One kind of fault or remark.

    ``severity`` holds for a strict reading, ``lenient`` for text from a model where that differs. ``bad`` and ``good``
    are whole scripts, read in ``mode``, checked against ``input`` (JSON text) where there is one; a fault of files has
    neither.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    why: str
    bad: str = ""
    good: str = ""
    lenient: Severity | None = None
    mode: Literal["strict", "lenient"] = "strict"
    input: str | None = None


_YES = '(final)=LLM("Say yes.")'
_REVIEW = '{"review": "Lovely soup."}'

_CATALOGUE = (
    Rule(
        "LWT001", "text-outside-step", "error",
        "A line belongs to no step and is no comment.",
        "A script is steps and comments only; a forgotten `#`, or a step whose head is misspelt, would otherwise vanish.",
        f"Here is the script:\n{_YES}", f"# Here is the script:\n{_YES}", lenient="warning",
    ),
    Rule(
        "LWT002", "unclosed-string", "error",
        "A string has no closing quote.",
        "Everything up to the next quote would become part of the prompt.",
        '(final)=LLM("Say yes.)', _YES,
    ),
    Rule(
        "LWT003", "unclosed-call", "error",
        "A call has no closing parenthesis.",
        "Where the step ends could only be guessed.",
        '(final)=LLM("Say yes."', _YES,
    ),
    Rule(
        "LWT004", "unescaped-quote", "error",
        "A quote inside a string ends the string early.",
        "The rest of the prompt would be lost; write a backslash before the quote, or use the other kind of quotes around the string.",
        '(final)=LLM("Say "yes" or "no".")', """(final)=LLM('Say "yes" or "no".')""", lenient="warning",
    ),
    Rule(
        "LWT005", "unexpected-text", "error",
        "Something in a call is neither a value nor an option, or a comma is missing.",
        "What it was meant to say could only be guessed.",
        '(final)=LLM("Say yes." temperature=0)', '(final)=LLM("Say yes.", temperature=0)',
    ),
    Rule(
        "LWT006", "text-after-step", "error",
        "Text follows a step on the line where it ends.",
        "A step ends with its line; what follows would be dropped.",
        f"{_YES} please", _YES,
    ),
    Rule(
        "LWT007", "bad-id", "error",
        "A step's id has characters that no id may have.",
        "Ids are letters, digits, `_` and `-`, with dots between parts, so that `{(id)}` is always told from text.",
        '(my step)=LLM("Say yes.")', '(my_step)=LLM("Say yes.")',
    ),
    Rule(
        "LWT008", "malformed-head", "error",
        "The beginning of a step lacks its `=` or a parenthesis.",
        "A step begins with `(id)=OP(`.",
        '(final) LLM("Say yes.")', _YES,
    ),
    Rule(
        "LWT009", "missing-operation", "error",
        "A step has no operation after its `=`.",
        "The operation says what to do with the text: `LLM` asks the model, `CONST` is a constant.",
        '(final)="Say yes."', _YES,
    ),
    Rule(
        "LWT010", "elided-template", "error",
        "The text is a sketch of a script, with `...` or ids like `length+1` to be filled in.",
        "Running what is there would leave out the steps that the sketch only hints at.",
        '(c1)=LLM("Check item 1.")\n...\n(final)=LLM("Sum up: {(c1)}")',
        '(c1)=LLM("Check item 1.")\n(c2)=LLM("Check item 2.")\n(final)=LLM("Sum up: {(c1)} {(c2)}")',
    ),
    Rule(
        "LWT011", "too-deep-or-large", "error",
        "Values are nested too deep, or the script is too large to be meant.",
        "A limit keeps a hostile text from taking the machine's memory.",
        f"(final)=CONST({'[' * 100}{']' * 100})", "(final)=CONST([[]])",
    ),
    Rule(
        "LWT012", "unknown-reference", "error",
        "A reference names no step of the script.",
        "The prompt would go to the model without the text it is about.",
        '(check)=LLM("Open on Sunday?")\n(final)=LLM("Sum up: {(chekc)}")',
        '(check)=LLM("Open on Sunday?")\n(final)=LLM("Sum up: {(check)}")',
    ),
    Rule(
        "LWT013", "cycle", "error",
        "Steps wait for each other, or a step for itself.",
        "None of them could ever start.",
        '(a)=LLM("Improve: {(b)}")\n(b)=LLM("Improve: {(a)}")',
        '(a)=LLM("Write a line.")\n(b)=LLM("Improve: {(a)}")',
    ),
    Rule(
        "LWT014", "duplicate-id", "error",
        "Two steps have the same id.",
        "A reference could mean either; in text from a model the last one counts.",
        '(a)=LLM("One.")\n(a)=LLM("Two.")', '(a)=LLM("One.")\n(b)=LLM("Two. {(a)}")', lenient="warning",
    ),
    Rule(
        "LWT015", "reserved-id", "error",
        "A step is called `input`, `item` or `index`.",
        "These names are the run's input and what EACH is at.",
        '(input)=LLM("Say yes.")', '(request)=LLM("Say yes.")',
    ),
    Rule(
        "LWT016", "empty-script", "error",
        "The script has no step.",
        "There is nothing to run, and an empty answer would look like a result.",
        "# nothing yet", f"# nothing more\n{_YES}",
    ),
    Rule(
        "LWT017", "dead-step", "warning",
        "The final step doesn't need this step.",
        "It is skipped; most often a reference to it was forgotten.",
        f'(a)=LLM("Name a dish.")\n{_YES}', '(a)=LLM("Name a dish.")\n(final)=LLM("Is {(a)} a soup?")',
    ),
    Rule(
        "LWT018", "unknown-operation", "error",
        "There is no operation of this name.",
        "The step couldn't run.",
        '(final)=LMM("Say yes.")', _YES,
    ),
    Rule(
        "LWT019", "unknown-option", "error",
        "The operation has no option of this name.",
        "A misspelt option would silently have no effect.",
        '(final)=LLM("Say yes.", temprature=0)', '(final)=LLM("Say yes.", temperature=0)',
    ),
    Rule(
        "LWT020", "option-value", "error",
        "A value is not one that the option takes, or an object has the same key twice.",
        "The call would fail, or mean something else than it says.",
        '(final)=LLM("Say yes.", temperature=7)', '(final)=LLM("Say yes.", temperature=0.7)',
    ),
    Rule(
        "LWT021", "arguments", "error",
        "A call has too few or too many arguments, or one of the wrong kind.",
        "Each operation takes its arguments in order, before the options.",
        '(final)=LLM("Say", "yes.")', _YES,
    ),
    Rule(
        "LWT022", "item-outside-each", "error",
        "`{(item)}` or `{(index)}` stands outside the call of an EACH.",
        "Only there is an item to speak of.",
        '(final)=LLM("Glad or sad? {(item)}")', '(final)=EACH({(input)}, LLM("Glad or sad? {(item)}"))',
    ),
    Rule(
        "LWT023", "input-path", "error",
        "The input that was given has nothing at this place.",
        "The step would fail; now it costs nothing to find out.",
        '(final)=LLM("Glad or sad? {(input)}["reveiw"]")', '(final)=LLM("Glad or sad? {(input)}["review"]")',
        lenient="warning", input=_REVIEW,
    ),
    Rule(
        "LWT024", "not-a-reference", "warning",
        "`{(` begins something that is no reference; it stays as text.",
        "If a reference was meant, the model would see its spelling; if text was meant, `{{(` says so.",
        '(final)=LLM("Fill in: {(what is it?)}")', '(final)=LLM("Fill in: {{(what is it?)}")',
    ),
    Rule(
        "LWT025", "misplaced-accessor", "warning",
        "The brackets of a reference stand inside its braces.",
        'It is read as text. The way into a value follows the braces: `{(id)}["key"]`.',
        '(final)=LLM("Glad or sad? {(input)[review]}")', '(final)=LLM("Glad or sad? {(input)}[review]")',
    ),
    Rule(
        "LWT026", "doubled-braces", "warning",
        "A reference is written with doubled braces.",
        "`{{(` stands for a literal `{(`, so the model would see the reference's spelling.",
        '(final)=LLM("Glad or sad? {{(input)}}")', '(final)=LLM("Glad or sad? {(input)}")',
    ),
    Rule(
        "LWT027", "stray-brace", "warning",
        "A `}` follows a reference and closes nothing.",
        "It goes to the model as text; most often it is a slip.",
        '(final)=LLM("Is {(input)}["open"]} true?")', '(final)=LLM("Is {(input)}["open"] true?")',
    ),
    Rule(
        "LWT028", "head-inside-prompt", "warning",
        "A line inside a prompt looks like the beginning of a step.",
        "Most often the string above it was not closed where it should be, and the step is now part of the prompt.",
        '(final)=LLM("Say yes.\n(b)=LLM(no)")', '(final)=LLM("Say yes.\n b is LLM(no)")',
    ),
    Rule(
        "LWT029", "backslash-n", "info",
        "`\\n` or `\\t` in a string is a backslash and a letter.",
        "Only the enclosing quote and the backslash itself can be escaped, so that LaTeX survives; a newline is written as one.",
        '(final)=LLM("Say yes.\\n- Now.")', '(final)=LLM("Say yes.\n- Now.")',
    ),
    Rule(
        "LWT030", "not-an-accessor", "info",
        "Brackets directly after a reference are no way into a value; they stay as text.",
        "A backslash before the bracket says that text is meant.",
        '(final)=LLM("{(input)}[in short, please]")', '(final)=LLM("{(input)}\\[in short, please]")',
    ),
    Rule(
        "LWT031", "final-step", "info",
        "No step is called `final`, so another rule chose the step whose output is the result.",
        "It is the only step that no other refers to or, where several are, the last one.",
        '(answer)=LLM("Say yes.")', _YES,
    ),
    Rule(
        "LWT032", "unused-ignore", "warning",
        "An ignore comment silences nothing.",
        "It would hide a fault that comes later.",
        f"# knotwork: ignore[LWT017]\n{_YES}",
        f'# knotwork: ignore[LWT017]\n(a)=LLM("Name a dish.")\n{_YES}',
    ),
    Rule(
        "LWT033", "accessor-on-scalar", "error",
        "A reference looks for a part of an answer that has no parts.",
        "A number, a yes or no, or one of a few words has no keys and no elements.",
        '(n)=LLM("How many?", type=int)\n(final)=LLM("Why {(n)}["count"]?")',
        '(n)=LLM("How many?", type=int)\n(final)=LLM("Why {(n)}?")',
    ),
    Rule(
        "LWT034", "empty-prompt", "warning",
        "A prompt is empty.",
        "The model would answer anything.",
        '(final)=LLM("")', _YES,
    ),
    Rule(
        "LWT035", "odd-character", "warning",
        "The text has a character that nobody sees; half a surrogate pair is an error.",
        "It can change what a line seems to say, and half a surrogate pair can't be written to a file or sent to a model.",
        '(final)=LLM("Say \u202eyes.")', _YES,
    ),
    Rule(
        "LWT036", "code-fence", "error",
        "The script stands in a code fence.",
        "Models write one around a script; in a script's own file it belongs to nothing.",
        f"```\n{_YES}\n```", _YES, lenient="warning",
    ),
    Rule(
        "LWT037", "bullet", "error",
        "A list bullet or number stands before a step.",
        "A step begins at the start of its line.",
        f"- {_YES}", _YES, lenient="warning",
    ),
    Rule(
        "LWT038", "smart-quotes", "error",
        "A string stands in typographic quotes.",
        "Word processors make them; strings take the plain ones.",
        "(final)=LLM(\u201cSay yes.\u201d)", _YES,
    ),
    Rule(
        "LWT039", "repeated-option", "error",
        "A call gives an option twice.",
        "One of the two would silently have no effect.",
        '(final)=LLM("Say yes.", retries=1, retries=2)', '(final)=LLM("Say yes.", retries=2)',
    ),
    Rule(
        "LWT040", "option-in-prompt", "warning",
        "The end of a repaired prompt looks like an option.",
        "With unescaped quotes in it a prompt reaches to the last quote, so the option became part of the prompt.",
        '(final)=LLM("Say "yes".", system="Be "brief" now.")',
        """(final)=LLM('Say "yes".', system='Be "brief" now.')""",
        mode="lenient",
    ),
    Rule(
        "LWT041", "lookalike", "warning",
        "A step or the input is named as another language would: `{name}`, `{{ name.key }}`, `$name`, `{(name)}.key`.",
        "It is text: the model would see the spelling instead of the value.",
        '(final)=LLM("Glad or sad? {{ input.review }}")', '(final)=LLM("Glad or sad? {(input)}["review"]")',
    ),
    Rule(
        "KW001", "unreadable-file", "error",
        "A file can't be read.",
        "It doesn't exist, is a folder, or may not be read; the message says which.",
    ),
    Rule(
        "KW002", "not-text", "error",
        "A file is not text in UTF-8.",
        "Guessing at an encoding would change what the prompts say.",
    ),
    Rule(
        "KW003", "too-large", "error",
        "A file is larger than the limit.",
        "A limit keeps a mistaken path from taking the machine's memory.",
    ),
    Rule(
        "KW004", "not-json", "error",
        "The input is not JSON.",
        "References look into it by keys and indexes; plain text is given as a JSON string.",
    ),
)  # fmt: skip

RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in _CATALOGUE})
"""All rules by code, in the order of their codes."""
