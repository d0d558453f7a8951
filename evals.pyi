from .runtime.api.evals import *  # noqa: F403  # the module under its public name
