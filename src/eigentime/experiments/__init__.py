"""The paper's experiments, each one file that reads from top to bottom: measure, compare, write results and figures."""
