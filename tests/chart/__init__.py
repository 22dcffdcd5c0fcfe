"""The Helm chart: linted, rendered and installed with a real Helm."""
