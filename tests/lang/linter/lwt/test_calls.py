"""Values without names, and options of ``EACH`` in the call that it repeats: one error each, with the edits that correct it."""

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.lwt import parse_lwt


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ('RUN("a.lwt")', 'RUN(file="a.lwt")'),
        ('RUN("a.lwt", {(input)})', 'RUN(file="a.lwt", input={(input)})'),
        ('RUN("a.lwt", input={(input)})', 'RUN(file="a.lwt", input={(input)})'),
        ('SEED("a.json", {(input)}, model="m")', 'SEED(file="a.json", context={(input)}, model="m")'),
        ('JOIN({(input)}["r"], {(input)}["s"])', 'JOIN(r={(input)}["r"], s={(input)}["s"])'),
        ('JOIN({(input)}, r={(input)}["r"], on="id")', 'JOIN(input={(input)}, r={(input)}["r"], on="id")'),
        ('CALL(function="f", text={(input)})', 'CALL("f", text={(input)})'),
        ('CALL(text={(input)}, function="f")', 'CALL("f", text={(input)})'),
        ('EXPR(expression="1 + 1")', 'EXPR("1 + 1")'),
        ('CALL("f", text="say "hi" now")', r'CALL("f", text="say \"hi\" now")'),
        ('EACH({(input)}, LLM("{(item)}", on_error=drop))', 'EACH({(input)}, LLM("{(item)}"), on_error=drop)'),
        (
            'EACH({(input)}, RUN(max_concurrency=2, file="a.lwt"))',
            'EACH({(input)}, RUN(file="a.lwt"), max_concurrency=2)',
        ),
    ],
)
def test_the_edits_make_the_correct_call(wrong: str, right: str) -> None:
    text = f"(final)={wrong}"
    (fault,) = check(parse_lwt(text))
    assert fault.severity == "error"
    assert apply_edits(text, fault.edits) == f"(final)={right}"
    assert not check(parse_lwt(f"(final)={right}"))


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("JOIN({(input)}, {(input)})", "LWT021"),  # both lists would have the same name
        ('JOIN({(input)}["on"], r={(input)})', "LWT021"),
        ('CALL("f", {(input)})', "LWT021"),  # the function's parameter is not known
        ('LLM("x", top_k=5)', "LWT019"),  # another meaning than top_p
        ('EACH({(input)}, LLM("{(item)}", on_error=drop), on_error=keep)', "LWT019"),
    ],
)
def test_without_a_certain_correction_there_is_no_edit(call: str, code: str) -> None:
    (fault,) = check(parse_lwt(f"(final)={call}"))
    assert (fault.code, fault.edits) == (code, ())
    assert fault.hints
