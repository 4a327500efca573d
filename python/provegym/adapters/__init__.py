"""Adapters: one module a framework. Each needs its framework, which ``pip install provegym[NAME]`` brings."""
