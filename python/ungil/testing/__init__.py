"""Tests of how long code keeps the GIL: a pytest plugin (`docs/testing.md`)."""
