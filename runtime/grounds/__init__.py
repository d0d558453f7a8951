"""What commands run on: ``values`` says what is to be opened, ``opening`` opens it, in the one way of all interfaces."""
