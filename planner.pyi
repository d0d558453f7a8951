from .runtime.facade.planner import *  # noqa: F403  # the module under its public name
