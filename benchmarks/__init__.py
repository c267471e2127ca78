"""emgpr against its peers, in one run: `make bench`.

- `data`: the problems, each a table to learn from and readings held out of it
- `methods/`: the contestants, a small file each
- `environments`: where each contestant is installed
- `worker`: one fit, in a process of its own on one core
- `run`: every method on every problem, repeats interleaved; a JSON file
- `inner`: what emgpr costs beside the linear algebra that it cannot do without
- `table`: tables and a plot from those files alone
- `gpu`: the same idea on a GPU
"""
