"""The notebook interface: ``%load_ext knotwork`` adds ``%%gasl``, ``%%lwt`` and ``%kw`` to IPython; they share one session.

Modules: ``magics`` (called by IPython), ``line_magics`` (the subcommands of ``%kw``, and the arguments of all magics), ``cells``
(text, position, pieces and check of a cell), ``session`` (the session that the magics use), ``event_loop`` (the session's event
loop, interrupts and progress), ``variables`` (sharing of names and values with Python), ``completion``, ``display`` (outcomes as
HTML and text), ``flow_diagram`` (data flow and evidence as SVG).
"""
