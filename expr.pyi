from .runtime.api.expr import *  # noqa: F403  # the module under its public name
