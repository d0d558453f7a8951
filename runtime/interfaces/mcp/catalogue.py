"""All tools by name, in the order in which clients are told them."""

from collections.abc import Mapping

from .tools.checking import CHECK
from .tools.explaining import EXPLAIN
from .tools.pages import PAGE
from .tools.plans import EXECUTE, RUN_PLAN
from .tools.scripts import RUN_LWT
from .tools.seeds import SEED_CHECK, SEED_COMPUTE
from .tools.sessions import SESSION
from .tools.states import ROLLBACK, SCHEMA, STATE_DIFF, STATE_SHOW
from .tools.tool import Tool

__all__ = ["TOOLS"]

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        SCHEMA, CHECK, EXPLAIN, RUN_PLAN, EXECUTE, SESSION, STATE_SHOW, STATE_DIFF, ROLLBACK, RUN_LWT, SEED_CHECK, SEED_COMPUTE, PAGE
    )
}  # fmt: skip
