"""From a request to the method that answers it: its parameters, its errors, its reference."""
