"""Who runs what, when: session, attempt, controller, feed, recovery."""
