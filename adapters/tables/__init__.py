"""Tables: the port (``port``), adapters (files, databases, data frames) and writers. ``factory.open_table`` opens a table."""
