"""Human review in Label Studio: interface, tasks, push and a local server.

Imports `schemas` only; never `transforms` or `pipeline`. The Label Studio server is itself a
Python package of this name and must never share an environment with us.
"""
