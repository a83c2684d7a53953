"""What the program is made of besides its own code: pins, their audit, their bill of materials."""
