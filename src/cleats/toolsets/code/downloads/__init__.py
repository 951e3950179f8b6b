"""What is fetched from elsewhere: sources, archives, and the tools that keep what they bring."""
