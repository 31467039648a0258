"""Files: written whole or not at all, and the folders in which a user's files are cached."""
