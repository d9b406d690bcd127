"""Recipes for schedulers, shipped with the package: `pantalla recipes` prints them."""
