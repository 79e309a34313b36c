"""What was before a listener came: from memory, log and lake, and what of it is gone."""
