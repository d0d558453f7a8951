"""Explains the faults inside and outside steps, with the edits that fix them.

Every candidate edit of a step is tried, and is offered only if it helps. If several explainers find a fault, the first fault is reported.
The explainers are ordered by how often models make these mistakes, the most frequent first.
"""

import re
from collections.abc import Collection

from ....catalogue.operations import BUILTIN, LLM_OPTIONS
from ....diagnostic import Edit
from ....source import Span
from ....trees.lwt import Call
from ....unicode_forms import canonical, mark_in
from ...repairs import Fault, fault, is_remark, reads_as_text, shortened
from ..engine import Failure, StepRead, read_step
from ..shapes import (
    BAD_HEAD,
    BRACKETED_HEAD,
    COLON_HEAD,
    ELISION,
    EMPTY_LINES,
    FENCE,
    HEAD,
    ID,
    LOOSE_HEAD,
    PLANNED_CALL,
    SMART_QUOTES,
    end_of_line,
    option_tail,
    skip_blank,
    start_of_line,
)
from .foreign_syntax import FOREIGN, LATE, bare_expression
from .quotes import inner_quotes, open_string, quoted_name, stray_quote, unclosed_before_options, unopened_value
from .references import InvalidStep, broken_references

_UNQUOTED_TAIL = option_tail("")
_OPTION = re.compile(r"[A-Za-z_]\w*[ \t]*=(?!=)")


def explain_step(text: str, start: int, stop: int, failure: Failure) -> Fault:
    """Explain why the step with its head at ``start`` is invalid. ``stop`` is the offset of the next head."""
    if failure.unbuildable:
        return failure.unbuildable.as_fault()
    step = InvalidStep(text, start, stop, failure)
    for explain in _EXPLAINERS:
        found = explain(step)
        if found:
            return found
    return _generic(step)


def _head_alone(step: InvalidStep) -> Fault | None:
    text, offset, after = step.text, step.failure.offset, step.failure.after
    if after == "head":
        below = re.compile(r"[ \t]*\r?\n\s{1,99}(?=[A-Za-z_]\w*[ \t]*\()").match(text, step.start + len(step.name) + 3)
        if below:
            join = Edit(Span(below.start(), below.end()), "")
            message = f"the operation of step ({step.name}) must be on the line of its head"
            return fault("LWT009", message, offset, offset + 1, "write it after the =, on the same line", edits=(join,))
        offset = min(offset, end_of_line(text, step.start))
        quoted = text[offset : offset + 1] in ('"', "'")
        edits: tuple[Edit, ...] = (Edit(Span(offset, offset), "LLM("), Edit(Span(step.trimmed, step.trimmed), ")"))
        edits = edits if quoted and step.mended_by(*edits) else ()
        message, hint = f"step ({step.name}) has no operation", f'write ({step.name})=LLM("...")'
        return fault("LWT009", message, offset, offset + 1, hint, edits=edits)
    if after == "name" and (text[offset : offset + 1] in ('"', "'", "{", "") or offset >= step.trimmed):
        name = re.search(r"[A-Za-z_]\w*\s*\Z", text[step.start : offset])
        if (
            name
            and name.start() == len(text[step.start : offset]) - len(name[0])
            and "(" not in text[step.start + 1 : offset]
        ):
            edits = (Edit(Span(offset, offset), "("), Edit(Span(step.trimmed, step.trimmed), ")"))
            edits = edits if step.mended_by(*edits) else ()
            at, operation = min(offset, step.trimmed), name[0].strip()
            message = f"{operation} needs an opening parenthesis"
            return fault("LWT005", message, at, at + 1, f"write {operation}(...)", edits=edits)
    return None


_ODD_QUOTES = SMART_QUOTES + "`"


def _smart_quotes(step: InvalidStep) -> Fault | None:
    text, at = step.text, step.failure.offset
    odd = text[at : at + 1]
    if not odd or odd not in _ODD_QUOTES or at >= step.trimmed or step.failure.after == "head":
        return None
    fence = re.compile(r"`+").match(text, at)
    begin = fence.end() if fence else at + 1
    last = max(text.rfind(quote, begin, step.stop) for quote in _ODD_QUOTES)
    if text[last] == "`" and odd == "`":
        last -= begin - at - 1
    tail = _UNQUOTED_TAIL.search(text, begin, step.stop)
    if tail and tail.end() == step.trimmed and text[tail.start() - 1] in _ODD_QUOTES:
        last = tail.start() - 1
    inner = [Edit(Span(i, i), "\\") for i in range(begin, max(last, begin)) if text[i] == '"']
    edits = (Edit(Span(at, begin), '"'), *inner, *([Edit(Span(last, last + begin - at), '"')] if last > at else []))
    edits = next((found for found in (edits, edits[:1]) if step.furthered_by(*found)), ())
    message, hint = f"{text[at:begin]} does not begin a string", "use straight quotes, \" or '"
    return fault("LWT038", message, at, begin, hint, edits=edits)


def _commas(step: InvalidStep) -> Fault | None:
    """Explain a missing comma before an option, or a surplus comma."""
    text, at = step.text, step.failure.offset
    if step.failure.after == "comma" and text[at : at + 1] == ",":
        surplus = Edit(Span(at, at + 1), "")
        edits = (surplus,) if step.mended_by(surplus) else ()
        return fault("LWT005", "two adjacent commas", at, at + 1, "remove one", edits=edits, accepted=True)
    if step.failure.after not in ("value", "name") or not _OPTION.match(text, at):
        return None
    behind = step.start + len(text[step.start : at].rstrip())
    edit = Edit(Span(behind, at), ", ")
    if not step.mended_by(edit):
        return None
    name = text[at : text.index("=", at)].strip()
    message, hint = f"a comma is missing before {name}=", "separate arguments and options with commas"
    return fault("LWT005", message, at, at + len(name), hint, edits=(edit,), accepted=True)


def _quotes_in_references(step: InvalidStep) -> Fault | None:
    """Explain ``{(input["name"])}``. This is not a reference, so the quotes around the key end the prompt."""
    first = step.failure.first_string
    if first < 0 or step.failure.quote:
        return None
    slips = list(broken_references(step.text, first, step.stop))
    edits = tuple(Edit(span, right) for span, right in slips)
    if not slips or not step.mended_by(*edits):
        return None
    span, right = slips[0]
    message = f"`{shortened(step.text[span.start : span.end], 60)}` is not a reference, and its quotes end the prompt"
    return fault("LWT025", message, span.start, span.end, f"write `{shortened(right, 60)}`", edits=edits, accepted=True)


def _ends_before(step: InvalidStep) -> bool:
    """Return whether parsing stopped after the text of the step.

    This is so at the end of that text, and at prose that an empty line separates from it.
    """
    text, offset = step.text, step.failure.offset
    if offset >= step.trimmed:
        return True
    before = text[step.start + len(text[step.start : offset].rstrip()) : offset]
    return before.count("\n") > 1 and not re.search(r"[\"')\]}=]", text[offset : step.trimmed])


def _open_call(step: InvalidStep) -> Fault | None:
    """Explain a missing closing parenthesis."""
    failure, text = step.failure, step.text
    behind = step.start + len(text[step.start : failure.offset].rstrip())
    if failure.after not in ("value", "comma", "name", "open") or not _ends_before(step):
        return None
    if inner := _inner_call(step):
        return inner
    for closing in (")", "))"):
        edit = Edit(Span(behind, behind), closing)
        if step.mended_by(edit):
            message = f"the call of step ({step.name}) is not closed"
            return fault("LWT003", message, behind - 1, behind, f"write {closing} to close the call", edits=(edit,))
    return None


_OF_EACH = "|".join(sorted(BUILTIN["EACH"].options.keys() - LLM_OPTIONS.keys()))


def _inner_call(step: InvalidStep) -> Fault | None:
    """Explain ``EACH({(a)}, LLM("...", on_error=drop)``: the inner call must be closed before the options of EACH."""
    option = re.compile(rf"\s{{0,9}},\s{{0,9}}(?:{_OF_EACH})\s{{0,4}}=").search(step.text, step.start, step.trimmed)
    if not option or step.text[option.start() - 1] == ")":
        return None
    at, name = option.start(), option[0].strip(" ,=\t\r\n")
    edit = Edit(Span(at, at), ")")
    if not step.mended_by(edit):
        return None
    message = f"the call before {name}= is not closed"
    return fault("LWT003", message, at - 1, at, f"write ) before {name}=", edits=(edit,))


_EXPLAINERS = (
    _head_alone, _smart_quotes, _commas, _quotes_in_references, bare_expression, unopened_value, stray_quote, quoted_name,
    *FOREIGN, unclosed_before_options,
    inner_quotes, open_string, *LATE, _open_call,
)  # fmt: skip

_EXPECTED = {
    "open": 'a value: "text", {(id)}, a number, true, false, null, [list], {"key": value}, or )',
    "comma": 'a value: "text", {(id)}, a number, true, false, null, [list], {"key": value}, or name=value',
    "list": "a value, or ]",
    "object": '"key": value, or }',
    "equals": 'a value: "text", a word, a number, {(id)}',
    "bar": 'a choice in quotes, like "yes" | "no"',
    "colon": "a value",
    "key": "a colon",
    "string": "the closing quote",
    "head": "an operation's name",
}


def _generic(step: InvalidStep) -> Fault:
    text, failure = step.text, step.failure
    offset = min(failure.offset, len(text))
    end = end_of_line(text, offset)
    found = re.match(r"\w+|\s*\S", text[offset:end])
    closing = {"(": ")", "[": "]", "{": "}"}.get(failure.inside, ")")
    hint = f"expected {_EXPECTED.get(failure.after, f'a comma, or {closing}')}"
    if not found or offset >= step.stop:
        at = min(offset, step.trimmed)
        return fault("LWT005", f"step ({step.name}) is incomplete", at, at + 1, hint)
    what = f"unexpected {shortened(found[0])!r} in step ({step.name})"
    return fault("LWT005", what, offset, offset + len(found[0]), hint)


# Explains text outside the steps: prose, code fences, bullets, invalid heads.

_FULL_ID = re.compile(rf"{ID}\Z")
_SKETCH = re.compile(r"[+<>…]|\.\.\.|\b[nNi] ?[+\-]")


def explain_bullet(text: str, start: int, end: int) -> Fault:
    """Explain the bullet, number or markup ``[start, end)`` before a head."""
    message = f"unexpected {shortened(text[start:end])!r} before the head of the step, which must begin its line"
    return fault("LWT037", message, start, end, "remove it", edits=(Edit(Span(start, end), ""),), accepted=True)


def explain_bad_head(text: str, start: int, stop: int) -> Fault | None:
    """Explain the line at ``start`` if it is an invalid head of a step."""
    bad = BAD_HEAD.match(text, start)
    if bad:
        name = bad["id"].strip()
        span = (bad.start("id"), max(bad.end("id"), bad.start("id") + 1))
        if _SKETCH.search(name):
            message = f"({shortened(name)}) is a pattern for several ids: this is only a sketch of a script"
            return fault("LWT010", message, *span, "write all steps, each with its own id, for example (0), (1), (2)")
        if mark := mark_in(name):
            right, message = canonical(name), f"the id {shortened(name)} contains the combining character {mark}"
            if not _FULL_ID.match(right):
                return fault("LWT007", message, *span, "write an id without combining characters")
            edit, hint = Edit(Span(*bad.span("id")), right), f"write {right}, in which the letter is one character"
            return fault("LWT007", message, *span, hint, edits=(edit,), accepted=True)
        mended = re.sub(r"[^\w\-.]+", "_", name).strip("_.-")
        mended = re.sub(r"\.(?=\.)|[.\-]+\Z", "", mended)
        # "fin al" becomes final if a reference uses that id or the id is final; otherwise it becomes fin_al.
        joined = re.sub(r"[ \t]+", "", name)
        meant = joined == "final" or f"{{({joined})}}" in text
        good = joined if meant and _FULL_ID.match(joined) else mended if _FULL_ID.match(mended) else ""
        message = f"{shortened(name)!r} is not a valid id of a step" if name else "this step has no id"
        hint = "an id consists of letters, digits, _ and -, in parts joined by dots: c1, final, 2.rev.0"
        edits = (Edit(Span(bad.start("id"), bad.end("id")), good),) if good else ()
        return fault("LWT007", message, *span, hint, edits=edits)
    other = BRACKETED_HEAD.match(text, start) or COLON_HEAD.match(text, start)
    if other:
        return _malformed(text, start, other, other["id"])
    loose = LOOSE_HEAD.match(text, start)
    if loose and loose["id"] and _FULL_ID.match(loose["id"].strip()):
        if loose["open"] != "(" and loose["sign"] in ("", ":") and not loose["close"]:
            return None  # "NOTE: LLM(...)" and "the LLM(...)" are prose
        return _malformed(text, start, loose, loose["id"].strip())
    return None


def _malformed(text: str, start: int, head: re.Match[str], name: str) -> Fault:
    right = f"({name})={head['op']}"
    message = f"a step must begin with (id)=OPERATION, not with {shortened(head[0])!r}"
    return fault("LWT008", message, start, head.end(), f"write {right}(", edits=(Edit(Span(start, head.end()), right),))


_MOST_LINES = 2_000
"""Number of faults after which ``explain_lines`` returns before the end of the range."""


def explain_lines(text: str, start: int, stop: int) -> tuple[list[Fault], int]:
    """Explain the lines of ``[start, stop)``. None of these lines begins a step. Consecutive lines of prose are one fault.

    Return the faults, and the offset where parsing continues. Parsing continues at ``stop``, or at an earlier offset if there are very
    many faults.
    """
    found: list[Fault] = []
    prose: list[tuple[int, int]] = []

    def flush() -> None:
        if prose:
            found.append(_prose(text, prose))
            prose.clear()

    at = start
    while at < stop:
        if blank := EMPTY_LINES.match(text, at, stop):
            flush()
            at = blank.end()
            continue
        end = text.find("\n", at, stop)
        if end < 0:
            end = stop
        first = end - len(text[at:end].lstrip())
        sign = text[first] if first < end else "#"
        if sign == "#":
            flush()
        elif sign in "`~" and FENCE.match(text, at):
            flush()
            whole = Span(start_of_line(text, at), min(end + 1, len(text)))
            edits = (Edit(whole, ""),)
            message, hint = "a code fence is not part of a script", "remove the line"
            found.append(fault("LWT036", message, first, end, hint, edits=edits, accepted=True))
        elif sign in "(.\u2026" and ELISION.match(text, at):
            flush()
            message = "steps are missing here: this is only a sketch of a script"
            found.append(fault("LWT010", message, first, end, "write all steps, or remove the line"))
        else:
            prose.append((first, end))
        at = end + 1
        if len(found) >= _MOST_LINES and not prose:
            return found, min(at, stop)
    flush()
    return found, stop


def _prose(text: str, lines: list[tuple[int, int]]) -> Fault:
    start, end = lines[0][0], lines[-1][1]
    bodies = [text[first:last].strip() for first, last in lines]
    sure = all(map(is_text, bodies, ["", *bodies]))
    what = "this line is not a step" if len(lines) == 1 else f"these {len(lines)} lines are not steps"
    hint = 'a step has the form (id)=LLM("..."); a comment is a line that begins with #'
    inside = HEAD.search(text, start, end)
    if inside:
        hint = "the head of a step must be at the start of a line; begin a new line before it"
    # Text that may be a step gets no edit, so the lenient parser does not remove it.
    edits = tuple(Edit(Span(first, first), "# ") for first, _ in lines) if sure else ()
    return fault("LWT001", what, start, min(end, end_of_line(text, start)), hint, edits=edits, accepted=True)


_STEPLIKE = re.compile(
    r"""["'`{}\[\]()]|\w+[ \t]*:?=(?!=)|.*(?:\b(?:LLM|CONST|EACH|EXPR|GASL|SEED|ANSWER)[ \t]*[("'\[{]|\{\()"""
)
_LABELLED = re.compile(r"[A-Za-z][\w ]{0,40}:[ \t]")
"""A line such as ``REMAINING: 5``: a value that was requested in addition to the steps."""


def is_text(line: str, before: str) -> bool:
    """Return whether the line is certainly prose, and not part of a step. ``before`` is the line of prose above it, or ""."""
    if plans_a_call(line):
        return False
    if is_remark(line):
        return True
    if ends_a_call(line):
        return False
    return not _STEPLIKE.match(line) and (_LABELLED.match(line) is not None or reads_as_text(line, before))


_WORDS = re.compile(r"(?!(?i:steps?|tasks?|calls?|actions?)\b)[^\W\d_]{2,}(?![^<>]*>)")
_SIGN_BEFORE = re.compile(r"[=\uff1d>\u2192\u2190|:\uff1a\u2013\u2014-][ \t*_`]*\Z")
_HEAD_BEFORE = re.compile(rf"\({ID}\)[ \t]*=[ \t]*\Z")
_ELIDED_PROMPT = re.compile(r"[^(]*\([ \t]*[\"'`\u201c]*(?:\.{2,}|\u2026|<[^<>]*>|(?:your )?(?:prompt|text)\b)")
_MOST_WORDS = 6
"""Maximum number of words in a label before a call, as in ``Then describe the fruit: LLM("...")``."""


_DOTTED = re.compile(r"[A-Za-z_][\w.]*\.\Z")


def plans_a_call(line: str, steps: Collection[Call] = (), *, is_outside: bool = False) -> bool:
    """Return whether the line may be a planned step without its head, rather than a sentence that mentions a call.

    Numbers, bullets, labels, names and markup may come before the call. A call between the words of a sentence is a mention, unless
    the call refers to an output. ``LLM("...")`` and ``LLM(words)`` are mentions in any sentence, and in any line outside the fence of the
    script (``is_outside``). ``steps`` are the calls of steps, which a sentence may repeat. In a comment or a heading, only a call with
    brackets counts, if a label or nothing comes before it and no words follow it, or if it refers to an output. A method of an object,
    as in ``client.LLM("...")``, counts only if it refers to an output; ``lwt.LLM("...")`` is the operation.
    """
    is_comment, line = line.startswith("#"), line.lstrip("#")
    for found in PLANNED_CALL.finditer(line):
        before, name_to_end = line[: found.start()], line[found.start() :]
        if dotted := _DOTTED.search(before):
            if dotted[0] not in ("lwt.", "knotwork.", "knotwork.lwt.") and "{(" not in name_to_end:
                continue
            before = before[: dotted.start()]
        if _HEAD_BEFORE.search(before):
            continue  # a complete step, or a sentence that mentions one
        read = read_step(f"(x)={name_to_end}", 0)
        end = read.end - len("(x)=") if isinstance(read, StepRead) else name_to_end.rfind(")") + 1 or len(name_to_end)
        words = len(_WORDS.findall(before))
        is_followed = _WORDS.search(name_to_end, end) is not None
        is_labelled = not words or (words <= _MOST_WORDS and _SIGN_BEFORE.search(before) is not None)
        if is_comment and (
            not re.match(r"\w+[ \t]*[(\uff08]", name_to_end)
            or is_followed
            or not (is_labelled or "{(" in name_to_end)
            or re.search(r"\.\.\.|\u2026", name_to_end)
        ):
            continue
        if not found["clear"] or _ELIDED_PROMPT.match(name_to_end):
            is_mention = is_outside or is_comment or is_followed or not is_labelled
        elif words or is_followed:
            is_repeated = isinstance(read, StepRead) and read.step.call in steps
            is_mention = is_repeated or (is_followed and not is_labelled and "{(" not in name_to_end[:end])
        else:
            is_mention = False
        if not is_mention:
            return True
    return False


_ENUMERATOR = re.compile(r"\(?\w{1,3}\)[ \t]+")
_PROMPT_END = re.compile(r"[\"'\w\]}][ \t]*\)[ \t]*[;,.]?\Z")


def ends_a_call(line: str) -> bool:
    """Return whether a line may be the end of a step: it has more closing than opening parentheses, and ends with a closing one."""
    if ")" not in line:
        return False
    body = _ENUMERATOR.sub("", line, count=1)
    return body.count(")") > body.count("(") and _PROMPT_END.search(body) is not None


def explain_rest(text: str, start: int, end: int) -> tuple[Fault, int]:
    """Explain the text ``[start, end)`` after a step on the same line. Return the fault, and the offset where parsing continues."""
    first = skip_blank(text, start)
    head = HEAD.search(text, first, end)
    if head and text[first] != "#":
        between = text[first : head.start()].strip()
        is_lost = between.isalnum() or plans_a_call(between)
        edits = () if is_lost else (Edit(Span(start, head.start()), "\n"),)
        message, hint = "second step on this line", "write each step on its own line"
        return fault("LWT006", message, *head.span(), hint, edits=edits, accepted=True), head.start()
    rest = text[first:end].strip()
    if plans_a_call(rest):
        message, hint = "second call on this line, without a head", 'write it on its own line, as (id)=LLM("...")'
        return fault("LWT006", message, first, first + len(rest), hint), end
    if rest.startswith("#"):
        message, hint, right = "a comment must be on its own line", "move it above the step", "\n" + rest
    else:
        message = f"unexpected {shortened(rest)!r} after the step"
        hint, right = "remove it", ""
        if re.search(r"\w", rest):
            hint, right = "a step ends at its closing parenthesis", "\n# " + rest
    edits = (Edit(Span(start, end), right),)
    return fault("LWT006", message, first, first + len(rest), hint, edits=edits, accepted=True), end
