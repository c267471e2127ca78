"""Fitting a linear model of coregionalisation: settings, steps and checkpoints."""
