"""`make bench`: the table of docs/performance.md, from one run on one machine."""
