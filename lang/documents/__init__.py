"""JSON documents that people and models write: read with positions, checked, told in diagnostics."""
