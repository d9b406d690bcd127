"""The job: graph, configuration, run report and the command line."""
