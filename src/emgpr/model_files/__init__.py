"""Files that store fitted models, and checks of these files when they are read."""
