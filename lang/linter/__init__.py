"""The lints: checks of parsed texts, a package for each language, on the common ``framework``."""
