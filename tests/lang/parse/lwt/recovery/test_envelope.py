"""A script inside of what models write around it: whatever that is, the steps are those of the bare script, and each is told."""

# ruff: noqa: RUF001  prose stands in many alphabets here

import json

import pytest
from knotwork.lang.diagnostic import apply_edits, has_errors
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.source import Span
from knotwork.lang.trees.lwt import Script

ONE = '(a)=LLM("List the conditions in: {(input)}["request"]")'
TWO = """(b.1)=LLM('Does "{(a)}" hold (see `x`)?\n\nAnswer yes or no.', type="yes" | "no")"""
LAST = '(final)=LLM("Given {(a)} and {(b.1)}, what is best?", temperature=0)'
BARE = f"{ONE}\n{TWO}\n{LAST}\n"
STEPS = parse_lwt(BARE).steps
FLAT = [step.replace("\n\n", " ") for step in (ONE, TWO, LAST)]
"""The steps, each on one line."""
FLAT_STEPS = parse_lwt("\n".join(FLAT)).steps


def fenced(tag: str = "", mark: str = "```", script: str = BARE) -> str:
    return f"{mark}{tag}\n{script}{mark}\n"


def indented(text: str, by: str) -> str:
    """Indent the lines of a script, but not those inside of its prompt."""
    return text.replace("(a)=", f"{by}(a)=").replace("(b.1)=", f"{by}(b.1)=").replace("(final)=", f"{by}(final)=")


def each(before: str, behind: str = "") -> str:
    return "".join(f"{before}{step}{behind}\n" for step in (ONE, TWO, LAST))


DRAFT = '(a)=LLM("a draft")\n(z)=LLM("to be thrown away")\n'
JSON_EXAMPLE = '```json\n{"final": "5", "why": ["(a)", "LLM(x)"]}\n```\n'

WRAPPINGS = {
    # fences
    "fence": fenced(),
    "fence lwt": fenced("lwt"),
    "fence text": fenced("text"),
    "fence python": fenced("python"),
    "fence plaintext": fenced("plaintext"),
    "fence with attributes": fenced('lwt title="plan.lwt" {1,3}'),
    "tildes": fenced("lwt", "~~~"),
    "four backticks": fenced("markdown", "````"),
    "fence in a fence": "````markdown\n" + fenced("lwt") + "````\n",
    "unclosed fence": f"```lwt\n{BARE}",
    "fence never opened": f"{BARE}```\n",
    "indented fence": f"1. The script:\n\n   ```lwt\n{indented(BARE, '   ')}   ```\n2. Run it.\n",
    "fence in a bullet": f"- ```lwt\n{indented(BARE, '  ')}  ```\n",
    "a fence a step": "".join(f"Next:\n{fenced('lwt', script=step)}" for step in (f"{ONE}\n", f"{TWO}\n", f"{LAST}\n")),
    "bullets behind": f"{fenced('lwt')}\n- (a) lists the conditions\n- {{(b.1)}} says yes or no\n- final: picks the best\n",
    "numbered plan behind": f"{fenced('lwt')}\n1. (a) = the conditions\n2. Then LLM(...) checks {{(a)}}\n3. (final) gives it\n",
    "numbered plan before": f"Plan:\n1) read the request\n2) [check] each item\n(3) rank\n\n{fenced('lwt')}",
    "json example behind": f"{fenced('lwt')}The output may look like this:\n{JSON_EXAMPLE}",
    "json example before": f"The input:\n{JSON_EXAMPLE}\n{fenced('lwt')}",
    "python example behind": f"{fenced('lwt')}\n```python\nresult = lwt.run(\"plan.lwt\", input={{'request': 'x'}})\nprint(result)\n```\n",
    "dots outside": f"Some thoughts\n...\n{fenced('lwt')}\n…\n",
    "sketch outside": f"The pattern is (n+1)=LLM(\"...\") for each item:\n{fenced('lwt')}(n+1)=LLM(\"...\")\n",
    "a head of prose outside": f"{fenced('lwt')}(a)= the conditions of the request\n(final): LLM(picks one)\n",
    "calls mentioned outside": f"{fenced('lwt')}As in a = LLM(\"...\"):\n2. LLM(\"...\")\n",
    "a step explained outside": f"{fenced('lwt')}Last, {LAST.removeprefix('(final)=')} decides.\n",
    "script tags in a fence": f"```html\n<script type=\"text/lwt\">\n{BARE}</script>\n```\n",
    # thoughts
    "think": f"<think>\nThe user wants {{(a)}}.\n- maybe LLM(\"x\")\n...\n</think>\n{BARE}",
    "think with a draft": f"<think>\nFirst try:\n{DRAFT}Hmm, (b)=LLM(\"no\n</think>\n\n{BARE}",
    "think with a fenced draft": f"<think>\n{fenced('lwt', script=DRAFT)}</think>\n\n{fenced('lwt')}",
    "think with an open fence": f"<think>\n```lwt\n{DRAFT}\n</think>\n{BARE}",
    "thinking": f"<thinking>Let me see: (a)=LLM(\"draft\")</thinking>\n{BARE}",
    "reasoning": f"<reasoning>\n{DRAFT}</reasoning>\n\n{fenced('lwt')}Done!",
    "think without its beginning": f"Okay, the user wants cafes.\n{DRAFT}So I write it.\n</think>\n\n{BARE}",
    "think behind a greeting": f"Sure! <think>hmm ({{(a)}}?)</think>\n{BARE}",
    "two thinks": f"<think>one</think>\n{ONE}\n{TWO}\n<think>\n{DRAFT}</think>\n{LAST}\n",
    "mistral's thoughts": f"[THINK]\n{DRAFT}[/THINK]{BARE}",
    "kimi's thoughts": f"\u25c1think\u25b7{DRAFT}\u25c1/think\u25b7\n{BARE}",
    "harmony": f"<|channel|>analysis<|message|>We need steps.\n{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>\n{BARE}",
    "think, prose, fence, prose": f"<think>\nwhat?\n</think>\nHere you go:\n{fenced('lwt')}\nLet me know if you need changes.",
    # tags
    "pre and code": f"<pre><code>\n{BARE}</code></pre>\n",
    "pre and code on the lines": f"<pre><code class=\"lwt\">{BARE.rstrip()}</code></pre>\n",
    "plan tag": f"<plan>\n{BARE}</plan>\n",
    "answer tag": f"<answer>{BARE.rstrip()}</answer>",
    "script tag": f"<script>\n{BARE}</script>\n",
    "a tag a step": each("<step>", "</step>"),
    "details": f"<details>\n<summary>The script (3 steps)</summary>\n\n{fenced('lwt')}</details>\n",
    "cdata": f"<script><![CDATA[\n{BARE}]]></script>\n",
    "entities": f"<pre>\n{BARE.replace('&', '&amp;').replace(chr(34), '&quot;').replace(chr(39), '&#39;')}</pre>\n",
    "special tokens": f"<|im_start|>assistant\n{BARE}<|im_end|>\n",
    # markup before steps
    "bullets": each("- "),
    "stars": each("* "),
    "dots as bullets": each("\u2022 "),
    "task list": each("- [ ] "),
    "numbers": f"1. {ONE}\n2. {TWO}\n3. {LAST}\n",
    "numbers in circles": f"\u2460 {ONE}\n\u2461 {TWO}\n\u2462 {LAST}\n",
    "keycaps": f"1\ufe0f\u20e3 {ONE}\n2\ufe0f\u20e3 {TWO}\n3\ufe0f\u20e3 {LAST}\n",
    "step labels": f"Step 1: {ONE}\nStep 2: {TWO}\nStep 3: {LAST}\n",
    "bold step labels": f"**Step 1:** {ONE}\n**Step 2:** {TWO}\n**Final step:** {LAST}\n",
    "named labels": f"Conditions: {ONE}\nCheck of the first item: {TWO}\nResult \u2014 {LAST}\n",
    "headings": f"### Step 1\n{ONE}\n### Step 2\n{TWO}\n### Final\n{LAST}\n",
    "steps as headings": each("## "),
    "bold": each("**", "**"),
    "bold heads": BARE.replace("(a)=", "**(a)**=").replace("(b.1)=", "**(b.1)=**").replace("(final)=", "**(final)** ="),
    "italic": each("*", "*"),
    "underscores": each("__", "__"),
    "inline code": each("`", "`"),
    "inline code in bullets": each("- `", "`"),
    "emojis": f"\U0001f680 {ONE}\n\u2705 {TWO}\n\U0001f3c1 {LAST}\n\U0001f389\n",
    "arrows": each("\u2192 "),
    "quotation": "".join(f"> {line}\n" for line in BARE.splitlines()),
    "quoted fence": "Here:\n\n" + "".join(f"> {line}\n" for line in fenced("lwt").splitlines()) + "\nGood luck!",
    "nested quotation": "".join(f"> > {line}".rstrip() + "\n" for line in BARE.splitlines()),
    "rules": f"---\n{BARE}---\n***\n",
    "frontmatter": f"---\ntitle: plan\nsteps: 3\n---\n{BARE}",
    # characters
    "crlf": BARE.replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + BARE,
    "byte order mark and fence": "\ufeff" + fenced("lwt"),
    "zero width spaces": indented(BARE, "\u200b"),
    "no-break spaces": indented(BARE, "\u00a0\u00a0"),
    "ideographic spaces": indented(BARE, "\u3000"),
    "tabs": indented(BARE, "\t"),
    "direction marks": indented(BARE, "\u200f"),
    "blank lines": BARE.replace("\n(", "\n\n \t\n("),
    # prose without a fence
    "chat": f"Sure! Here's the script you asked for:\n\n{BARE}\nLet me know if you'd like any changes!",
    "explanation with references": f"{BARE}\nExplanation:\n- {{(a)}} is a list\n- \"final\" uses {{(b.1)}}\n(Test it.)\n",
    "mentions of steps": f"We need (a)= first.\n{BARE}\nHere (a)=LLM(\"List the...\") asks.\n(a)= the conditions, (final)= the answer\n",
    "calls mentioned": f"Every step is LLM(\"...\") or EACH(...).\n- LLM(\"...\"): one answer\nHere LLM(\"Why?\") asks.\n{BARE}",
    "models mentioned": f"LLMs (\"large models\") and an LLM (a model) join (\"merge\") it.\nAn \"LLM\" answers.\n{BARE}",
    "mention in inline code": f"{BARE}\nThe step `(a)=LLM(\"...\")` reads the request.\n",
    "mathematics": f"Let f(x) = 2x, with x = 3 and (n+1) = 4.\n(1) First case\n(2) Second case [see below]\n\n{BARE}",
    "notes with parentheses": f"{BARE}\nNote (important): the input (a dict) has \"request\" (a text).\nSee also [1], {{x}} and 'y'.\n",
    "apology": f"Apologies, my earlier (a)=LLM(\"...\") was wrong, sorry!\nCorrected:\n{BARE}",
    "message behind": f"===LWT_SKELETON===\n{BARE}\n===MESSAGE===\nCONDITIONS: DriveThru=True\nREMAINING: [5]\nNEEDS_EXPANSION: no\n",
    "a table behind": f"{BARE}\n| step | what |\n|---|---|\n| (a) | conditions |\n| (b.1) | {{(a)}} |\n",
    "a json line behind": f"{BARE}\n{{\"status\": \"done\", \"steps\": 3}}\n",
    "chinese": f"好的,这是脚本:\n\n{BARE}\n希望对您有帮助(如有问题请告诉我)!\n",
    "chinese labels": f"第一步：{ONE}\n第二步：{TWO}\n最后：{LAST}\n",
    "german": f"Klar, hier ist das Skript:\n{BARE}\nViel Erfolg damit\nDer Schritt (a) liest die Anfrage\n",
    "arabic": f"إليك البرنامج النصي:\n{BARE}\nآمل أن يكون هذا مفيدا\n",
    "russian": f"Вот сценарий\n{BARE}\nШаг (a) читает запрос, шаг {{(b.1)}} проверяет\n",
    "russian labels": f"Шаг 1: {ONE}\nШаг 2: {TWO}\nИтог: {LAST}\n",
    "japanese": f"以下がスクリプトです。\n{fenced('lwt')}\n「(a)」は条件を一覧します\n",
    "french": f"Voici le script demandé\n« {{(a)}} » contient les conditions\n{BARE}\nBonne journée\n",
    "shouting": f"OUTPUT\n{BARE}\nEND OF SCRIPT\n",
    "python variable": f"script = \"\"\"\n{BARE}\"\"\"\n",
    "python variable in a fence": f"```python\nplan = '''\n{BARE}'''\nprint(plan)\n```\n",
    "yaml block": f"script: |\n{indented(BARE, '  ')}",
    "latex": f"\\begin{{verbatim}}\n{BARE}\\end{{verbatim}}\n",
    # JSON
    "json string": json.dumps(BARE),
    "json object": json.dumps({"script": BARE}),
    "json object, indented": json.dumps({"thought": "we need (a)=LLM(\"x\")", "lwt_skeleton": BARE, "message": "REMAINING: 5"}, indent=2),
    "json list": json.dumps([ONE, TWO, LAST]),
    "json list, indented": json.dumps([ONE, TWO, LAST], indent=2),
    "json list with non-ascii escapes": json.dumps([ONE, TWO, LAST]).replace("List", "\\u004cist"),
    "json object of a list": json.dumps({"steps": [ONE, TWO, LAST]}, indent=1),
    "json object of objects": json.dumps({"steps": [{"n": 1, "step": ONE}, {"n": 2, "step": TWO}, {"n": 3, "step": LAST}]}),
    "fenced json": f"Here:\n```json\n{json.dumps({'script': BARE}, indent=2)}\n```\nThat's all.\n",
    "json behind prose": f"Here is the plan: it has three steps.\n{json.dumps([ONE, TWO, LAST])}\nHope it helps\n",
    "json string of a fence": json.dumps(fenced("lwt")),
    "json behind thoughts": f"<think>\n[\"(a)=LLM('draft')\"]\n</think>\n{json.dumps({'script': BARE})}",
    "python list": repr([ONE, TWO, LAST]),
    "python list in a variable": f"lwt = {[ONE, TWO, LAST]!r}\n",
    "trailing comma": json.dumps([ONE, TWO, LAST], indent=2).replace('"\n]', '",\n]'),
    "a string a line": "".join(json.dumps(step) + "\n" for step in (ONE, TWO, LAST)),
    "yaml list of strings": "steps:\n" + "".join(f"  - {json.dumps(step)}\n" for step in (ONE, TWO, LAST)),
}  # fmt: skip

FLAT_WRAPPINGS = {
    "table": "| # | step |\n|---|---|\n" + "".join(f"| {n} | {step} |\n" for n, step in enumerate(FLAT, 1)),
    "table with a column behind": "".join(f"| {step} | what it does |\n" for step in FLAT),
    "table of inline code": "".join(f"| {n} | `{step}` |\n" for n, step in enumerate(FLAT, 1)),
    "one line": " ".join(FLAT),
    "semicolons": "".join(f"{step};\n" for step in FLAT),
    "remarks behind": "".join(f"{step}  # asks\n" for step in FLAT),
    "explained behind": "".join(f"{step} -> the answer\n" for step in FLAT),
    "html list": "<ul>\n" + "".join(f"<li><code>{step}</code></li>\n" for step in FLAT) + "</ul>\n",
    "html breaks": "<br>\n".join(FLAT) + "<br/>\n",
    "quotes around lines": "".join(f"`{step}`,\n" for step in FLAT),
}


def lenient(text: str) -> Script:
    return parse_lwt(text, "lenient")


@pytest.mark.parametrize("name", WRAPPINGS)
def test_the_steps_are_those_of_the_bare_script(name: str) -> None:
    read(name, WRAPPINGS[name], STEPS)


@pytest.mark.parametrize("name", FLAT_WRAPPINGS)
def test_steps_on_one_line_each(name: str) -> None:
    read(name, FLAT_WRAPPINGS[name], FLAT_STEPS)


SILENT = {"headings", "crlf", "byte order mark", "tabs", "blank lines"}
"""What a script may have."""


def read(name: str, text: str, steps: tuple[object, ...]) -> None:
    script = lenient(text)
    assert [str(d) for d in script.diagnostics if d.severity == "error"] == []
    if "\r" in text:
        steps = parse_lwt("\n".join((ONE, TWO, LAST)).replace("\n", "\r\n")).steps
    assert script.steps == steps
    for step in script.steps:
        shown = script.source.slice(step.span)
        assert f"({step.id})" in shown.replace("**", "")
    if name not in SILENT:
        assert script.diagnostics, "what is left out is told"
    strict = apply_edits(text, [edit for d in script.diagnostics for edit in d.edits])
    again = parse_lwt(strict)
    assert not has_errors(again.diagnostics), strict
    assert again.steps == steps


NESTED = '''(a)=LLM("""Put your thoughts into
<think> and </think>:
```json
{"k": ["(z)=LLM(1)"]}
```
> (quoted)=LLM(2)
- not a step
\u00a0...""")
'''


@pytest.mark.parametrize(
    "text", [NESTED, f"Sure:\n{NESTED}", fenced("lwt", "~~~", NESTED), f"<think>\nhm\n</think>\n{NESTED}"]
)
def test_what_stands_in_a_prompt_stays(text: str) -> None:
    script = lenient(text)
    assert not has_errors(script.diagnostics)
    assert script.steps == parse_lwt(NESTED).steps


BROKEN = {
    "a cut step behind the fence": f'{fenced("lwt", script=ONE)}(final)=LLM("Given {{(a)}} and',
    "a cut step before the fence": f'(final)=LLM("Given {{(a)}} and\n\n{fenced("lwt", script=ONE)}',
    "a step that can't be read in the fence": fenced("lwt", script='(a)=LLM("x", 5 6)\n(final)=LLM("{(a)}")\n'),
    "a line of a step in the fence": fenced("lwt", script='(a)=LLM("x")\nLLM("y {(a)}")\n'),
    "dots in the fence": fenced("lwt", script='(0)=LLM("x")\n...\n(final)=LLM("{(0)}")\n'),
    "a pattern in the fence": fenced("lwt", script='(0)=LLM("x")\n(n+1)=LLM("y")\n'),
    "a head without its operation": '(a)=LLM("x")\n(b)= the rest of {(a)}\n',
    "a head without its parentheses": '(a)=LLM("x")\nb = LLM("{(a)}")\n',
    "a prompt that ended early": '(a)=LLM("x")\nand then say \'y\'")\n',
    "options on a line of their own": '(a)=LLM("x")\n, temperature=0)\n',
    "a text without a call": '(a)=LLM("x")\nb = "Use {(a)}"\n',
    "a step in a sentence": '(a)=LLM("x")\nThen maybe (b)=LLM("Use {(a)}") to be sure\n',
    "two versions, in a fence and outside": f'{fenced("lwt", script=ONE)}Better:\n(a)=LLM("List them: {{(input)}}")\n',
    "thoughts without an end": f"<think>\n{BARE}",
    "thoughts without an end and a fence": f"<think>\nLet me see.\n{fenced('lwt')}",
    "two scripts in one object": json.dumps({"first": ONE, "second": LAST}),
    "a broken step in a list": json.dumps([ONE, '(final)=LLM("Given {(a)}']),
}


CALL = 'LLM("Use {(a)}.")'
HEADLESS = [
    f"2. {CALL}", f"2.{CALL}", f"2) {CALL}", f"- {CALL}", f"* {CALL}", f"\u2022 {CALL}", f"- [ ] {CALL}", f"> {CALL}", f"a) {CALL}",
    f"[2] {CALL}", f"**2.** {CALL}", f"**2. {CALL}**", f"`{CALL}`", f"_{CALL}_", f"\uff12\uff0e{CALL}", f"\u2461 {CALL}",
    f"Step 2: {CALL}", f"**Step 2:** {CALL}", f"Step two \u2014 {CALL}", f"\u7b2c2\u6b65\uff1a{CALL}", f"Final: {CALL}",
    f"$2 = {CALL}", f"@b = {CALL}", f"b \u2190 {CALL}", f"let b = {CALL};", f"b: str = {CALL}", f"b = {CALL}.strip()", f"return {CALL}",
    f"(b) {CALL}", f"(b)\n  {CALL}", f"b := {CALL}", f"2. b: {CALL}", f"[b]={CALL}", f"2. [b]={CALL}", f"{{b}}={CALL}", f"<b>{CALL}</b>",
    f"\uff08b\uff09\uff1d{CALL}", f"\u3010b\u3011={CALL}", f"(b)\uff1d{CALL}", "\uff08b\uff09\uff1dLLM\uff08\u201cUse {(a)}.\u201d\uff09",
    f"| 2 | {CALL} |", f"<step>{CALL}</step>", f"Then, as the last step: {CALL}", f"Then I ask {CALL}.", f"Then {CALL} gives the answer",
    "2. LLM(\n  \"Use {(a)}.\"\n)", "2. LLM('''Use\n{(a)}.''')", '2. LLM("Use {(a)}.', '2. LLM("say "hi" to {(a)}")',
    '2. llm("Go on.")', '2. LLM("...")', "2. LLM(Go on.)", "2. LLM(Use {(a)}.)", '2. LLM "Go on."', '2. LLM: "Go on."',
    '2. LLM["Go on."]', '2. LLM(f"Go on.")', '2. EACH({(a)}, LLM("{(item)}"))', "2. JOIN(x={(a)}, y={(a)})", '2. EXPR("1 + 1")',
    "2. CONST(5)", '2. RUN(file="b.lwt")', '2. CALL("count", text={(a)})', '2. SEARCH("Rome")', 'b = search("Rome")', '"Use {(a)}."',
]  # fmt: skip


@pytest.mark.parametrize("line", HEADLESS)
@pytest.mark.parametrize("wrap", ["{}\n{}\n", "{1}\n{0}\n", "```\n{}\n{}\n```\n"], ids=["behind", "before", "fenced"])
def test_a_planned_call_without_a_head_is_an_error_in_both_readings(line: str, wrap: str) -> None:
    text = wrap.format('(a)=LLM("x")', line)
    assert has_errors(lenient(text).diagnostics)
    assert has_errors(parse_lwt(text).diagnostics)


@pytest.mark.parametrize(
    "text",
    [
        f"{fenced('lwt')}2. {CALL}\n",
        f"{fenced('lwt')}b = {CALL}\n",
        f"{fenced('lwt')}and then\n```\n{CALL}\n```\n",
        f"{ONE} {CALL}\n",
        f"{ONE} -> {CALL}\n",
        f'{ONE} {CALL} (c)=LLM("y")\n',
        f'{CALL} (c)=LLM("y")\n',
        f'(a)=LLM("say "hi" now")\n2. {CALL}\n',
        f'(a)=LLM("say "hi" now")\n{CALL}\n',
        f'(a)=LLM("say hi\n2. {CALL}\n',
        json.dumps([ONE, f"2. {CALL}"]),
        json.dumps({"steps": [ONE], "last": CALL}),
    ],
)
def test_a_planned_call_is_never_lost_beside_a_step(text: str) -> None:
    assert has_errors(lenient(text).diagnostics)


@pytest.mark.parametrize("line", [
    f"## Step 2: {CALL}", f"#2 {CALL}", f"### {CALL}", '# LLM("Go on.")', f"## Then summarise {CALL}", f"# b = {CALL}", f"#2 lwt.{CALL}",
])  # fmt: skip
def test_a_comment_with_a_planned_call_is_an_error_only_in_the_lenient_reading(line: str) -> None:
    (found,) = lenient(f'(a)=LLM("x")\n{line}\n').diagnostics
    assert (found.code, found.severity, found.span) == ("LWT001", "error", Span(13, 13 + len(line)))
    assert not parse_lwt(f'(a)=LLM("x")\n{line}\n').diagnostics


@pytest.mark.parametrize("line", [
    f"# (b)={CALL}", '# Step 1: LLM("x")', '# 2. LLM("...")', "# EACH({(a)}, ...)", '# LLM("Why?") asks for the reason', "# LLM(the model)",
    '# client.LLM("Go on.")', "# EXPR: {(a)}",
])  # fmt: skip
def test_a_comment_that_mentions_a_call_stays_a_comment(line: str) -> None:
    assert not lenient(f'(a)=LLM("x")\n{line}\n').diagnostics


@pytest.mark.parametrize("line", [f"2. lwt.{CALL}", f"- call {CALL}", f"- client.{CALL}", '- knotwork.LLM("Go on.")'])
def test_an_operation_of_a_module_is_a_planned_call(line: str) -> None:
    assert has_errors(lenient(f'(a)=LLM("x")\n{line}\n').diagnostics)


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_may_be_a_step_is_never_left_out_as_prose(text: str) -> None:
    assert has_errors(lenient(text).diagnostics)


def told(text: str) -> list[tuple[str, str]]:
    script = lenient(text)
    assert not has_errors(script.diagnostics)
    return [
        (found.code, found.message)
        for found in script.diagnostics
        if found.code != "LWT036" or "outside" in found.message
    ]


def test_a_second_fence_corrects_the_first_and_is_told() -> None:
    text = f"{fenced('lwt', script=DRAFT)}Wait, corrected:\n{fenced('lwt')}"
    assert [step.id for step in lenient(text).steps] == ["z", "a", "b.1", "final"]
    assert ("LWT014", "step (a) is defined again below; only the last one is used") in told(text)


def test_a_step_outside_of_the_fence_counts_and_is_told() -> None:
    text = f"{fenced('lwt', script=ONE)}And one more:\n{LAST}\n"
    assert [step.id for step in lenient(text).steps] == ["a", "final"]
    assert ("LWT036", "step (final) is outside the code fence that contains other steps; it is read too") in told(text)


def test_what_looks_like_a_step_outside_of_the_fence_is_told() -> None:
    (found,) = told(f"{fenced('lwt')}, type=int)\n")
    assert found[1].startswith("this line looks like a step but is outside the code fence")


def test_drafts_in_thoughts_are_counted_in_the_message() -> None:
    (found,) = told(f"<think>\n{DRAFT}</think>\n{BARE}")
    assert (
        found[1]
        == "the text between <think> and its end is a thinking block, not script; the 2 steps in it are drafts and are ignored"
    )


def test_text_without_a_step_is_no_error_of_its_reading() -> None:
    for text in ("I can't help with that.", '{"answer": 5}', "<think>\nhm\n</think>\n抱歉", "- one\n- {(a)}\n"):
        assert not has_errors(lenient(text).diagnostics), text
