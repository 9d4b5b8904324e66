"""What the defaults were chosen by."""
