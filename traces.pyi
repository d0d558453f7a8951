from .runtime.api.traces import *  # noqa: F403  # the module under its public name
