"""Linear model of coregionalisation with Fourier features, fitted using sufficient statistics."""
