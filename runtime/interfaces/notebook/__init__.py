"""The notebook interface: ``%load_ext knotwork`` adds ``%%gasl``, ``%%lwt`` and ``%kw`` to IPython, over one interactive session.

Modules: ``magics`` (called by IPython), ``line_magics`` (the subcommands of ``%kw``), ``cells`` (text, position, pieces and
arguments of a cell), ``session`` (the session behind the magics), ``event_loop`` (its own event loop, interrupts and progress),
``variables`` (sharing of names and values with Python), ``completion``, ``display`` (outcomes as HTML and text), ``flow_diagram``
(data flow and evidence as SVG).
"""
