"""Show what others computed: tables for the terminal, figures, progress bars."""
