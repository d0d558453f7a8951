"""What the commands about seeds write and show: results as they come, the progress, the summary."""
