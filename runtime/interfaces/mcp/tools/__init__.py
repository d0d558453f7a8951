"""The tools, one module per subject. ``tool`` defines a tool and a call."""
