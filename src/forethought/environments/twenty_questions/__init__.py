"""20 Questions: find a hidden object by questions that are answered with Yes or No."""
