"""The lints: checks of parsed text. Each language has its own package, based on the common ``framework``."""
