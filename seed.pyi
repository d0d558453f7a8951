from .runtime.facade.seed import *  # noqa: F403  # the module under its public name
