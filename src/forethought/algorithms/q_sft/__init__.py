"""Q-learning by supervised fine-tuning."""
