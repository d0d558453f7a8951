"""Search over plans: states are nodes, ``next_actions`` are branches, and plans run on forks. See ``docs/design/loops.md#search``.

``search`` is the entry point; greedy, beam and MCTS are its strategies. ``docs/reference/search.md`` describes its use.
"""

from .growth import Opener, Opening
from .nodes import MOST_CALLS, Action, ActionError, Branch, Budget, Node, Stopped, read_actions
from .policies import Filled, Judged, Proposer, Rollout, Untaken, Value
from .search_run import AdoptError, Searched, Settings, Strategy, adopt, search
from .trees import Tree, TreeBranch, TreeError, TreeNode

__all__ = [
    "MOST_CALLS", "Action", "ActionError", "AdoptError", "Branch", "Budget", "Filled", "Judged", "Node", "Opener", "Opening", "Proposer",
    "Rollout", "Searched", "Settings", "Stopped", "Strategy", "Tree", "TreeBranch", "TreeError", "TreeNode", "Untaken",
    "Value", "adopt", "read_actions", "search",
]  # fmt: skip
