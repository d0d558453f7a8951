"""Search over plans: states are nodes, ``next_actions`` are branches, plans are executed on forks. See ``docs/design/loops.md#search``.

``search`` is the way in; greedy, beam and MCTS are its strategies. docs/reference/search.md tells of it.
"""

from .actions import Action, ActionError, read_actions
from .adopting import AdoptError, adopt
from .budget import MOST_CALLS, Budget, Stopped
from .judging import Judged
from .nodes import Branch, Node
from .policies import Filled, Proposer, Rollout, Untaken, Value
from .running import Searched, Settings, Strategy, search
from .stepping import Opener, Opening
from .trees import Tree, TreeBranch, TreeError, TreeNode

__all__ = [
    "MOST_CALLS", "Action", "ActionError", "AdoptError", "Branch", "Budget", "Filled", "Judged", "Node", "Opener", "Opening", "Proposer",
    "Rollout", "Searched", "Settings", "Stopped", "Strategy", "Tree", "TreeBranch", "TreeError", "TreeNode", "Untaken",
    "Value", "adopt", "read_actions", "search",
]  # fmt: skip
