"""The Lab page: one page in the browser that asks for iterative answers and shows them as they come."""

__all__: list[str] = []
