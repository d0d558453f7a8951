from .runtime.facade.expr import *  # noqa: F403  # the module under its public name
