"""Facts about IR on which passes and verifiers decide; nothing here changes the IR."""
