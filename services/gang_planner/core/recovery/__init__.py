"""When something went wrong: repairs, releases, pauses, room held for the lost, deadlines."""
