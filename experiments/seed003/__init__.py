"""Seed 003: bilevel SVM with bundle methods, a draft."""
