"""An operation and a function are complete when they have all the places that docs/internals.md names."""

import re

import pytest
from knotwork import lwt
from knotwork.lang.catalogue.operations import BUILTIN, FUNCTIONS, METHODS, Function
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.trees import walk
from knotwork.lang.trees.expr import Call, MethodCall
from knotwork.lang.trees.lwt import Call as StepCall
from knotwork.runtime.api.shared_workspace import ALLOWED
from knotwork.runtime.interfaces.mcp.resources import card
from knotwork.runtime.lwt.operations import OPERATIONS
from support.folders import DOCS, GOLDEN


def golden(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8")


def test_the_table_of_operations_is_that_of_their_runners() -> None:
    assert list(OPERATIONS) == list(BUILTIN)


@pytest.mark.parametrize("name", BUILTIN)
def test_an_operation_has_every_place(name: str) -> None:
    script = lwt.parse(BUILTIN[name].example)
    assert [step.call.operation for step in script.steps] == [name], "its example does not use it"
    written = {
        node.operation
        for step in lwt.parse(golden("lwt/identity.lwt")).steps
        for node in walk(step)
        if isinstance(node, StepCall)
    }
    assert name in written, "tests/golden/lwt/identity.lwt has no line with it"
    page = (DOCS / "reference/lwt.md").read_text(encoding="utf-8")
    assert re.search(rf"^#+ .*\b{name}\b", page, re.M), "docs/reference/lwt.md has no section about it"
    assert (BUILTIN[name].example in card("lwt")) == (name in ALLOWED), "the card for models does not have it"


@pytest.fixture(scope="module")
def used() -> set[str]:
    reads = (parse_expr(line).expr for line in golden("expr/identity.expr").splitlines()[1:])
    nodes = [node for read in reads if read is not None for node in walk(read)]
    functions = {node.function for node in nodes if isinstance(node, Call)}
    return functions | {node.method for node in nodes if isinstance(node, MethodCall)}


@pytest.mark.parametrize("function", [*FUNCTIONS.values(), *METHODS.values()], ids=lambda function: function.name)
def test_a_function_has_every_place(function: Function, used: set[str]) -> None:
    """Its implementation is compared in evaluate/expr/test_costs.py, its row in the reference in test_docs.py."""
    assert function.name in used, "tests/golden/expr/identity.expr has no line with it"
    assert re.search(rf"\b{function.name}\b", card("expr")), "the card for models does not have it"
