"""eigentime"""
