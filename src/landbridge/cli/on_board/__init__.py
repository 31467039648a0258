"""``--on ssh://USER@BOARD``: what is compiled here runs there, by the system's ssh and the Landbridge of the board."""
