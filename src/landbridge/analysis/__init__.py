"""Facts about IR that passes and verifiers decide by; nothing here changes it."""
