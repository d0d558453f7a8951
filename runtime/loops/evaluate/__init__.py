"""Evaluates the results of seeds, scripts and loops with labelled data. Contains metrics, intervals, comparisons and tuning."""
