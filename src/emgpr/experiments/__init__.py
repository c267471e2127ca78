"""The paper's tables and figures, and a demonstration: one command each, stored rows -> table.

- `jura`, `atms`: the two experiments, as jobs; each job becomes one stored row
- `jura_results`, `atms_results`: tables and figures from those rows alone
- `choices`, `choices_results`: why the defaults are what they are
- `rules`: the combination rules compared
- `rows`: JSON lines that survive being stopped
- `published.toml`: what the paper prints, and where
- `demo`: the Jura data end to end in a minute
"""
