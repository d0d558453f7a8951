from .runtime.api.planner import *  # noqa: F403  # the module under its public name
