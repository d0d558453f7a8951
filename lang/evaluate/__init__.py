"""What conditions, expressions and seeds mean: each has an interpreter, the reference, and a code generator for speed."""
