"""The stories: which room works after which. The only room that knows their order."""
