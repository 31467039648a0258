"""``--on ssh://USER@BOARD``: runs programs compiled here on a board, by the system's ssh and the board's Landbridge."""
