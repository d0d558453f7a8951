"""``python -m knotwork`` is the ``knotwork`` command."""

from .runtime.interfaces.cli import main

if __name__ == "__main__":
    main()
