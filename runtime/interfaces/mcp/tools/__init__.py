"""The tools, a room a subject. ``tool`` says what one is, ``reading`` reads and checks texts for all of them."""
