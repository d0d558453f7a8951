"""Text to trees and back: sources, diagnostics, trees, parsers, printers and linters. Pure: no I/O, no model, no graph."""
