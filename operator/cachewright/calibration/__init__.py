"""Calibration: from labelled pairs of questions to a threshold and a guard. Pure; for `cli.calibrate`."""
