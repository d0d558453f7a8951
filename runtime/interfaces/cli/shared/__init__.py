"""What every command needs: reading files, writing output, the exit codes, showing diagnostics and tables."""
