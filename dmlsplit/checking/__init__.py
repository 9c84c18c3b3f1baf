"""Files and targets to results: the verdict on each operator of each file."""
