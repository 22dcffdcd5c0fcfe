"""End-to-end tests on a real node, and the throwaway cluster they run on."""
