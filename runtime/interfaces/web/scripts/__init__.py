"""Scripts over HTTP: checked first, run within the limits of a request, told as they go."""
