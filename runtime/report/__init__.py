"""The data for reports. ``api/reports`` renders the reports.

For a report on a state, ``findings`` reads the state, ``steps`` describes commands in plain English, and ``drawings`` draws graphs and
trees. For a report on a run, ``run_reader`` reads the folder of the run, and ``narrative`` converts the events into an ``account``.
"""
