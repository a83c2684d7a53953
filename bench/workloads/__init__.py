"""What is measured: made-up sessions, and the programs that use them."""
