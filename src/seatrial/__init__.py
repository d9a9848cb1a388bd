"""A sea trial for AI agents: how well they do real work, from the traces they leave."""

__version__ = "0.1.0"
