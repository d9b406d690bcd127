"""The run report: figures once, told as JSON, as text, and as one page to look at."""
