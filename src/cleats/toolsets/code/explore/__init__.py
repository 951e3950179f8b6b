"""The toolset `explore`: plain-text answers with line numbers, for agents that read code."""
