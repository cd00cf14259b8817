"""WebShop: search a shop, choose a product and its options, and buy what was asked for."""
