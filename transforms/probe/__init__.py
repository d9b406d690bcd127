"""Find out in which convention a model gives coordinates: ask about screens we drew ourselves."""
