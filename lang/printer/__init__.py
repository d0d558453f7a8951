"""Trees back to text, in one spelling. A room a language."""
