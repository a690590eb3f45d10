"""Benchmarks of jax_stateful_rng against its peers, all in one run.

``python -m benchmarks --help`` says how to run them.
"""
