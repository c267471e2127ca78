"""Experiments for the paper's tables and figures, for the choice of defaults, and for the demo.

Every experiment is a list of jobs. The result of each job is stored as one line, called a row, of a
file. Tables and figures are computed from this file.

- `jura`, `atms`: the paper's two experiments
- `jura_results`, `atms_results`: tables and figures of these experiments
- `choices`, `choices_results`: comparison of the defaults with alternative settings
- `rules`: comparison of the rules for combining ensemble members
- `truth`: fits to data simulated with known parameters
- `demo`: model comparison and maps for the Jura data, which take about a minute
- `fitting`: a single fit
- `rows`: the file of results, from which an interrupted run is resumed
- `tables`: formatting of tables and numbers
- `published.toml`: the numbers published in the paper, with their sources
"""
