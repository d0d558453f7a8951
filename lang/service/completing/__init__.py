"""What may stand at the cursor. The text before it is followed to the state that the parser is in there; what the parser takes
next is what is offered, as the printer writes it.

Rooms: ``asking`` (the same for all languages), ``behind`` (what of the text behind the cursor goes), ``ignored`` (codes in comments),
``place`` (the parser's state, the words that it takes, and of what kind a name there would be), ``ranking`` (what fits to what was
typed, the best first), and a room a language, with its helpers.
"""
