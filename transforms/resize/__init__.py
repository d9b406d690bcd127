"""Show the model what its own processor would have made, so that what it sees is known."""

from transforms.resize.show import image_tokens, seen_chain, seen_image, seen_size

__all__ = ["image_tokens", "seen_chain", "seen_image", "seen_size"]
