"""Generated from proto/ by proto/generate.py: don't edit."""
