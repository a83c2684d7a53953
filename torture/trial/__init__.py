"""How a row is tried: the program, the machine, the record of what came of it."""
