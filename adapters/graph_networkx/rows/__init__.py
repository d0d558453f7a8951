"""What a node and an edge of the live graph are: their fields, their form outside, and looking at each of them."""
