"""SGLang with a DFlash drafter, and the DDTree forks of it."""
