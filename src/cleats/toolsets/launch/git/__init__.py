"""Git for repositories from anywhere: fetched at one commit, nothing of them is run."""
