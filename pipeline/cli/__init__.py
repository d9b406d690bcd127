"""The `pantalla` command line: one file per verb."""
