"""The device mynpu for Landbridge."""
