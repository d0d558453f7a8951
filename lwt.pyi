from .runtime.facade.lwt import *  # noqa: F403  # the module under its public name
