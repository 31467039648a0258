"""This process and its helpers: locks, cores, memory and threads, helper processes, collection of garbage."""
