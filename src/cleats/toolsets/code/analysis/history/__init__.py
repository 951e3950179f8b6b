"""Git facts about a repository: its current state, and the authors of its lines."""
