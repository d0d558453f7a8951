from .runtime.api.lwt import *  # noqa: F403  # the module under its public name
