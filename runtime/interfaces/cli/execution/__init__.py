"""What stands around a run: what was asked, the models, the display while it goes on, and the summary at its end."""
