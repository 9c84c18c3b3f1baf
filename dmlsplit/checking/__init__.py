"""Turns files and targets into results: the verdict on each operator of each file."""
