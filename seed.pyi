from .runtime.api.seed import *  # noqa: F403  # the module under its public name
