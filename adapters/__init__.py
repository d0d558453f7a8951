"""The world outside the languages: a port per room, and the adapters that stand behind it."""
