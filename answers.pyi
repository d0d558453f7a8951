from .runtime.api.answers import *  # noqa: F403  # the module under its public name
