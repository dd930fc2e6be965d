"""Models behind Anthropic's Messages API. Needs the extra `mnemostream[anthropic]`."""
