"""The data of reports. ``api/reports`` renders them.

State: ``findings`` reads the state, ``steps`` describes commands in plain English, ``drawings`` draws graphs and trees. Run:
``run_reader`` reads the run's folder, ``narrative`` converts its events into an ``account``.
"""
