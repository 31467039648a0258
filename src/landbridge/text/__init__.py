"""Text for people: names of strangers made safe to show, and the known name most similar to an unknown one."""
