"""Tests that need nothing but this process and loopback."""
