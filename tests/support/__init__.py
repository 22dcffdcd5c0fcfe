"""Objects and stand-ins that several tiers of tests share."""
