"""A seed to sessions: a built-in world, a scripted fleet and simulated users, for demonstrations and tests."""
