"""Which screens of a plan are the same picture, or nearly so: decided by the plan alone."""
