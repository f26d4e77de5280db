"""EM with adaptive or fixed task difficulty."""
