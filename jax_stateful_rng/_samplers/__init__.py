"""The laws, one family a file: their methods, and the pure samplers below them."""
