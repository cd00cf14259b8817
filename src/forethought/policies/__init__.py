"""Who answers? Models that generate and score with the same weights."""
