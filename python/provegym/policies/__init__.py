"""Policies that are driven from here: ``provegym.policies.chat`` plays with a language model. Importing this loads neither."""
