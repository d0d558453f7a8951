"""The rules for prompt scripts."""

from .rule import Rule

_YES = '(final)=LLM("Say yes.")'
_REVIEW = '{"review": "Lovely soup."}'

LWT_RULES = (
    Rule(
        "LWT001", "text-outside-step", "error",
        "A line is neither part of a step nor a comment.",
        "A script contains only steps and comments. If other lines were ignored, a forgotten `#` or a misspelt step would go unnoticed.",
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
        "The end of the step is unclear.",
        '(final)=LLM("Say yes."', _YES,
    ),
    Rule(
        "LWT004", "unescaped-quote", "error",
        "A quote inside a string ends the string early.",
        "The rest of the prompt would be lost. Write a backslash before the quote, or use the other kind of quotes around the string.",
        '(final)=LLM("Say "yes" or "no".")', """(final)=LLM('Say "yes" or "no".')""", lenient="warning",
    ),
    Rule(
        "LWT005", "unexpected-text", "error",
        "A call contains text that is neither a value nor an option, or a comma is missing.",
        "The meaning of the call is unclear.",
        '(final)=LLM("Say yes." temperature=0)', '(final)=LLM("Say yes.", temperature=0)',
    ),
    Rule(
        "LWT006", "text-after-step", "error",
        "Text follows a step on the step's last line.",
        "If the text were ignored, part of the script could be lost.",
        f"{_YES} please", _YES,
    ),
    Rule(
        "LWT007", "bad-id", "error",
        "A step's id contains invalid characters.",
        "An id consists of letters, digits, `_` and `-`, with dots between its parts, so `{(id)}` can be distinguished from other text.",
        '(my step)=LLM("Say yes.")', '(my_step)=LLM("Say yes.")',
    ),
    Rule(
        "LWT008", "malformed-head", "error",
        "The `=` or a parenthesis is missing at the beginning of a step.",
        "A step begins with `(id)=OP(`.",
        '(final) LLM("Say yes.")', _YES,
    ),
    Rule(
        "LWT009", "missing-operation", "error",
        "A step has no operation after the `=`.",
        "The operation defines how the text is used: `LLM` sends it to the model, `CONST` makes it a constant.",
        '(final)="Say yes."', _YES,
    ),
    Rule(
        "LWT010", "elided-template", "error",
        "The script is only a sketch: some steps are replaced by `...`, or have ids such as `length+1`.",
        "A run would omit the steps that the sketch does not contain.",
        '(c1)=LLM("Check item 1.")\n...\n(final)=LLM("Sum up: {(c1)}")',
        '(c1)=LLM("Check item 1.")\n(c2)=LLM("Check item 2.")\n(final)=LLM("Sum up: {(c1)} {(c2)}")',
    ),
    Rule(
        "LWT011", "too-deep-or-large", "error",
        "Values are nested too deeply, or the script is too large.",
        "Without a limit, a malicious script could use all memory.",
        f"(final)=CONST({'[' * 100}{']' * 100})", "(final)=CONST([[]])",
    ),
    Rule(
        "LWT012", "unknown-reference", "error",
        "A reference names an unknown step.",
        "The output of that step would be missing from the prompt.",
        '(check)=LLM("Open on Sunday?")\n(final)=LLM("Sum up: {(chekc)}")',
        '(check)=LLM("Open on Sunday?")\n(final)=LLM("Sum up: {(check)}")',
    ),
    Rule(
        "LWT013", "cycle", "error",
        "Steps refer to each other in a cycle, or a step refers to itself.",
        "None of these steps could ever start.",
        '(a)=LLM("Improve: {(b)}")\n(b)=LLM("Improve: {(a)}")',
        '(a)=LLM("Write a line.")\n(b)=LLM("Improve: {(a)}")',
    ),
    Rule(
        "LWT014", "duplicate-id", "error",
        "Two steps have the same id.",
        "A reference could mean either step. In a script from a model, the last of them is used.",
        '(a)=LLM("One.")\n(a)=LLM("Two.")', '(a)=LLM("One.")\n(b)=LLM("Two. {(a)}")', lenient="warning",
    ),
    Rule(
        "LWT015", "reserved-id", "error",
        "A step has the reserved id `input`, `item` or `index`.",
        "`input` is the run's input; `item` and `index` are the current element of EACH and its index.",
        '(input)=LLM("Say yes.")', '(request)=LLM("Say yes.")',
    ),
    Rule(
        "LWT016", "empty-script", "error",
        "The script has no steps.",
        "No step would run, and the empty output would look like a result.",
        "# nothing yet", f"# nothing more\n{_YES}",
    ),
    Rule(
        "LWT017", "dead-step", "warning",
        "The final step does not depend on this step.",
        "A run skips the step. Usually another step should refer to it.",
        f'(a)=LLM("Name a dish.")\n{_YES}', '(a)=LLM("Name a dish.")\n(final)=LLM("Is {(a)} a soup?")',
    ),
    Rule(
        "LWT018", "unknown-operation", "error",
        "The operation is unknown.",
        "A step with an unknown operation can't run.",
        '(final)=LMM("Say yes.")', _YES,
    ),
    Rule(
        "LWT019", "unknown-option", "error",
        "The operation has no option with this name.",
        "A misspelt option would silently have no effect.",
        '(final)=LLM("Say yes.", temprature=0)', '(final)=LLM("Say yes.", temperature=0)',
    ),
    Rule(
        "LWT020", "option-value", "error",
        "An option has an invalid value, or a value that contains an object with a duplicate key.",
        "The call would fail, or the option would not have the intended effect.",
        '(final)=LLM("Say yes.", temperature=7)', '(final)=LLM("Say yes.", temperature=0.7)',
    ),
    Rule(
        "LWT021", "arguments", "error",
        "A call has too few or too many arguments, or an argument of the wrong kind.",
        "Each operation takes its arguments in order, before the options.",
        '(final)=LLM("Say", "yes.")', _YES,
    ),
    Rule(
        "LWT022", "item-outside-each", "error",
        "`{(item)}` or `{(index)}` is used outside the inner call of an EACH.",
        "Only the call inside an EACH has a current item.",
        '(final)=LLM("Glad or sad? {(item)}")', '(final)=EACH({(input)}, LLM("Glad or sad? {(item)}"))',
    ),
    Rule(
        "LWT023", "input-path", "error",
        "The script refers to a missing part of the input, or to the input in a run without input.",
        "The step would fail or send an incomplete prompt, after earlier steps have already cost money. The run is therefore "
        "refused before its first call.",
        '(final)=LLM("Glad or sad? {(input)}["reveiw"]")', '(final)=LLM("Glad or sad? {(input)}["review"]")',
        input=_REVIEW,
    ),
    Rule(
        "LWT024", "not-a-reference", "warning",
        "`{(` does not begin a valid reference, so it is read as text.",
        "If you meant a reference, correct it; otherwise the model sees the characters instead of a value. If you meant text, write `{{(`.",
        '(final)=LLM("Fill in: {(what is it?)}")', '(final)=LLM("Fill in: {{(what is it?)}")',
    ),
    Rule(
        "LWT025", "misplaced-accessor", "warning",
        "The brackets of a reference are inside its braces.",
        'The reference is read as text. Write the path after the braces: `{(id)}["key"]`.',
        '(final)=LLM("Glad or sad? {(input)[review]}")', '(final)=LLM("Glad or sad? {(input)}[review]")',
    ),
    Rule(
        "LWT026", "doubled-braces", "warning",
        "A reference is written with doubled braces.",
        "`{{(` is an escape for a literal `{(`, so the model would see the reference itself instead of its value.",
        '(final)=LLM("Glad or sad? {{(input)}}")', '(final)=LLM("Glad or sad? {(input)}")',
    ),
    Rule(
        "LWT027", "stray-brace", "warning",
        "An extra `}` follows a reference.",
        "The brace is sent to the model as text. Usually it is a typo.",
        '(final)=LLM("Is {(input)}["open"]} true?")', '(final)=LLM("Is {(input)}["open"] true?")',
    ),
    Rule(
        "LWT028", "head-inside-prompt", "warning",
        "A line inside a prompt looks like the beginning of a step.",
        "Usually an earlier string is not closed, so the step has become part of the prompt.",
        '(final)=LLM("Say yes.\n(b)=LLM(no)")', '(final)=LLM("Say yes.\n b is LLM(no)")',
    ),
    Rule(
        "LWT029", "backslash-n", "info",
        "`\\n` or `\\t` in a string is read as a backslash and a letter.",
        "Only the enclosing quote and the backslash can be escaped, so LaTeX stays unchanged. To write a newline, break the line.",
        '(final)=LLM("Say yes.\\n- Now.")', '(final)=LLM("Say yes.\n- Now.")',
    ),
    Rule(
        "LWT030", "not-an-accessor", "info",
        "Brackets directly after a reference are not a valid path into its value, so they are read as text.",
        "If you meant text, write a backslash before the bracket. An unclosed path, such as `[3` or `[\"key`, is an error, because "
        "the prompt would contain the entire value.",
        '(final)=LLM("{(input)}[in short, please]")', '(final)=LLM("{(input)}\\[in short, please]")',
    ),
    Rule(
        "LWT031", "final-step", "info",
        "No step has the id `final`, so another rule selects the step whose output is the result of the run.",
        "The result is the output of the only step that no other step refers to. If there are several such steps, the result is "
        "the output of the last step of the script.",
        '(answer)=LLM("Say yes.")', _YES,
    ),
    Rule(
        "LWT032", "unused-ignore", "warning",
        "An ignore comment does not suppress any finding.",
        "Later, the comment could hide a new fault.",
        f"# knotwork: ignore[LWT017]\n{_YES}",
        f'# knotwork: ignore[LWT017]\n(a)=LLM("Name a dish.")\n{_YES}',
    ),
    Rule(
        "LWT033", "accessor-on-scalar", "error",
        "A reference has a path into an answer that has no such part.",
        "Numbers, booleans and the labels of a choice have neither keys nor elements. An answer with `schema=` has the keys of its schema.",
        '(n)=LLM("How many?", type=int)\n(final)=LLM("Why {(n)}["count"]?")',
        '(n)=LLM("How many?", type=int)\n(final)=LLM("Why {(n)}?")',
    ),
    Rule(
        "LWT034", "empty-prompt", "warning",
        "A prompt is empty.",
        "The model would get no task, and its answer would be arbitrary.",
        '(final)=LLM("")', _YES,
    ),
    Rule(
        "LWT035", "odd-character", "warning",
        "The script contains an invisible character, or a lone surrogate (which is an error).",
        "An invisible character can make a line look like a different line. A lone surrogate can't be stored or sent to a model.",
        '(final)=LLM("Say \u202eyes.")', _YES,
    ),
    Rule(
        "LWT036", "code-fence", "error",
        "The script is inside a code fence.",
        "Models often put a fence around a script, but the fence is not part of the script.",
        f"```\n{_YES}\n```", _YES, lenient="warning",
    ),
    Rule(
        "LWT037", "bullet", "error",
        "A list bullet or number precedes a step.",
        "A step begins at the start of its line.",
        f"- {_YES}", _YES, lenient="warning",
    ),
    Rule(
        "LWT038", "smart-quotes", "error",
        "A string is in typographic quotes.",
        "Word processors insert such quotes, but a string needs plain `\"` or `'`.",
        "(final)=LLM(\u201cSay yes.\u201d)", _YES,
    ),
    Rule(
        "LWT039", "repeated-option", "error",
        "A call has the same option twice.",
        "One of the two values would silently have no effect.",
        '(final)=LLM("Say yes.", retries=1, retries=2)', '(final)=LLM("Say yes.", retries=2)',
    ),
    Rule(
        "LWT040", "option-in-prompt", "warning",
        "A prompt was repaired, and its end looks like an option.",
        "A quote after a backslash does not end the string, so the text after the quote is part of the prompt and not an option.",
        r'(final)=LLM("Say "yes".\", type=json please")',
        """(final)=LLM('Say "yes".', system='Be "brief" now.')""",
        mode="lenient",
    ),
    Rule(
        "LWT041", "lookalike", "warning",
        "A reference to a step or the input has the syntax of another language: `{name}`, `{{ name.key }}`, `$name`, `{(name)}.key`.",
        "The reference is read as text, so the model would see the reference itself instead of its value.",
        '(final)=LLM("Glad or sad? {{ input.review }}")', '(final)=LLM("Glad or sad? {(input)}["review"]")',
    ),
    Rule(
        "LWT042", "faulty-program", "error",
        "The program in a `GASL` call has a fault. The message ends with the code of that fault.",
        "The program is checked together with its script, before the first step runs.",
        '(final)=GASL("FIND nodes WHERE degree > 20")', '(final)=GASL("FIND nodes WHERE degree > 20 AS hubs")',
    ),
    Rule(
        "LWT043", "faulty-expression", "error",
        "The expression in an `EXPR` call or in a `when=` option has a fault. The message ends with the code of that fault.",
        "The expression is checked together with its script, before the first step runs.",
        '(n)=LLM("How many?", type=int)\n(final)=EXPR("n + m", n={(n)})',
        '(n)=LLM("How many?", type=int)\n(final)=EXPR("n + 1", n={(n)})',
    ),
    Rule(
        "LWT044", "reference-as-text", "error",
        "A reference is used inside the string of `EXPR`, or inside quotes in `when=`.",
        "The output of a step would become part of the expression's text. Pass values to `EXPR` by name; in `when=`, write "
        "references without quotes.",
        '(n)=LLM("How many?", type=int)\n(final)=EXPR("{(n)} + 1")',
        '(n)=LLM("How many?", type=int)\n(final)=EXPR("n + 1", n={(n)})',
    ),
    Rule(
        "LWT045", "unused-binding", "warning",
        "The call passes a value that the expression does not use.",
        "The step nevertheless waits for the value. Usually the name of the value is misspelt.",
        '(n)=LLM("How many?", type=int)\n(final)=EXPR("1 + 1", n={(n)})',
        '(n)=LLM("How many?", type=int)\n(final)=EXPR("n + 1", n={(n)})',
    ),
    Rule(
        "LWT046", "binding-name", "error",
        "A value passed to an expression has a reserved name, such as the name of a function, `if` or `true`.",
        "The expression could not refer to the value.",
        '(n)=LLM("How many?", type=int)\n(final)=EXPR("1 + 1", sum={(n)})',
        '(n)=LLM("How many?", type=int)\n(final)=EXPR("1 + total", total={(n)})',
    ),
    Rule(
        "LWT047", "never-equal", "error",
        "A comparison can never be true, because the value has another type or other labels.",
        "With `type=`, an answer always has this type, and a choice is always one of its labels. Without `type=`, an answer such as `3` "
        "is read as a number and never equals a string.",
        '(mood)=LLM("Glad or sad?", type="glad" | "sad")\n(final)=LLM("Why?", when="{(mood)} == \'angry\'")',
        '(mood)=LLM("Glad or sad?", type="glad" | "sad")\n(final)=LLM("Why?", when="{(mood)} == \'sad\'")',
    ),
    Rule(
        "LWT048", "unoffered-function", "error",
        "A `CALL` names a function that the host does not offer.",
        "A script can call only the functions that the host names: `--functions FILE.py` on the command line, `functions=` in Python. "
        "`knotwork check` without `--functions` accepts any name.",
    ),
    Rule(
        "LWT049", "faulty-file", "error",
        "The file named by `file=` can't be read, or has a fault at the reported place.",
        "The file is read before the first step runs. Otherwise the step could fail after earlier steps have already cost money. A script "
        "that `RUN` names is checked as well, with the scripts that it runs: they must not run each other in a circle, and at most eight "
        "may be nested.",
    ),
    Rule(
        "LWT050", "faulty-check", "error",
        "A check of an `ANSWER` is invalid.",
        "The form of each check is verified before the first step runs. Patterns use RE2 syntax, without look-around or "
        "back-references.",
        '(final)=ANSWER("Why is the sky blue?", check="words:10-40")',
        '(final)=ANSWER("Why is the sky blue?", check="words:10..40")',
    ),
    Rule(
        "LWT051", "nothing-evaluates", "error",
        "An `ANSWER` has neither criteria for a judge nor a check.",
        "The answers could not be evaluated, so no answer could be accepted.",
        '(final)=ANSWER("Why is the sky blue?")',
        '(final)=ANSWER("Why is the sky blue?", criteria="It is true, and a child understands it.")',
    ),
    Rule(
        "LWT052", "unsuited-join", "error",
        "A `JOIN` can't work with its values: one is not a list, the lists have different lengths without `on=`, or a column of `on=` "
        "does not exist.",
        "The step would fail after earlier steps have cost money. Only constants, the given input, and the types and schemas of answers "
        "are known before the run.",
        '(a)=CONST([{"id": 1}])\n(final)=JOIN(a={(a)}, b={(input)}, on="idd")',
        '(a)=CONST([{"id": 1}])\n(final)=JOIN(a={(a)}, b={(input)}, on="id")',
    ),
    Rule(
        "LWT053", "equal-samples", "warning",
        "A call takes several samples (`n=`) at temperature 0.",
        "At temperature 0 a model almost always gives the same answer, so further samples cost calls and rarely change the result.",
        '(mood)=LLM("Glad or sad? {(input)}", type="glad" | "sad", n=3, temperature=0)',
        '(mood)=LLM("Glad or sad? {(input)}", type="glad" | "sad", n=3, temperature=0.8)',
    ),
    Rule(
        "LWT054", "unsupported-option", "error",
        "The model of a step can't take an option.",
        "Without the option, the model would answer a different request than the script describes. The models are known when a run "
        "begins, so this is reported before the first call of a run, not by `knotwork check`.",
    ),
)  # fmt: skip
