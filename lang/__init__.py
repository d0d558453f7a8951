"""Sources, diagnostics, trees, parsers, printers and linters. This package is pure: it uses no I/O, no model and no graph."""
