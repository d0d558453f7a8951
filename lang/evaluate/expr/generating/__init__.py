"""The code generator: an expression as Python code, with guards that hand whatever they don't cover to the interpreter."""
