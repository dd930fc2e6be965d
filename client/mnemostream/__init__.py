"""The client of Mnemostream, long-term memory for AI agents."""
