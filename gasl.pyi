from .runtime.api.gasl import *  # noqa: F403  # the module under its public name
