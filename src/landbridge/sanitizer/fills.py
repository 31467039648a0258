"""The byte values that the sanitizer fills memory with."""

#: Redzones; memory that nobody wrote yet; memory that was freed.
REDZONE, POISON, FREED = 0xFB, 0xCD, 0xDD
