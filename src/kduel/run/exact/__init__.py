"""Counting on the exact machine: a trial with the plug-in, and two arms of a run or two kernels that are compared so."""
