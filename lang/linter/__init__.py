"""The lints: checks of parsed texts. Each language has its own package, based on the common ``framework``."""
