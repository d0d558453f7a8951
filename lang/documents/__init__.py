"""JSON documents written by people and models: read with positions, checked, faults reported as diagnostics."""
