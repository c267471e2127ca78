"""Benchmarks of emgpr and other libraries, run by `make bench`.

- `data`: the problems, each with a training table and held-out readings
- `methods/`: the methods that are compared, each in its own file
- `environments`: the environment in which each method is installed
- `worker`: a single fit, run in a separate process on one core
- `run`: runs every method on every problem, with interleaved repeats, and writes a JSON file
- `inner`: the costs of emgpr relative to the linear algebra that it requires
- `scores`: errors, log densities and interval coverage of predictions
- `table`, `plot`: tables and a figure, computed from stored results
- `gpu`: emgpr and GPyTorch on a GPU
- `known`, `large`, `large_table`: large problems simulated from a known model
- `planned`: planned and measured costs of fits
- `one_pass`, `dask_scale`: `OnePassGP`, and fits on a Dask cluster
- `cokriging`: gstat (R) and emgpr on the Jura data
"""
