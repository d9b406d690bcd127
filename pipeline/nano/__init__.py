"""The tiny checkpoint the project makes for itself: it proves the loading code, no more."""
