"""Data contracts of Pantalla: geometry, codes, records, tables and model profiles.

Everything else imports from here; this package imports nothing of the project.
"""
