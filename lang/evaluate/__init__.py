"""What conditions mean: an interpreter as the reference, and a code generator for speed."""
