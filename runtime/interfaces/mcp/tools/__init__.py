"""The tools, with one module per subject. The module ``tool`` defines what a tool and a call are."""
