"""Frozen behaviour: model files and numbers made by commit 981b750; see README.md."""
