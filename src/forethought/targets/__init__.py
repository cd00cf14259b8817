"""What should the model have done?"""
