"""A task and one attempt at it to a verdict: one check per file, each with name, version, layer and reason."""
