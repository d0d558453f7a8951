"""Trees back to text, in one spelling. One module per language."""
