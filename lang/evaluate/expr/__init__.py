"""What an expression means: an interpreter with limits as the reference, and a code generator. Design: FORMULA_SEED."""
