"""Models behind OpenAI's wire format: OpenAI itself, or any server that speaks it."""
