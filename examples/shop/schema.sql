CREATE TABLE products (sku TEXT PRIMARY KEY, title TEXT NOT NULL, price INTEGER NOT NULL);
CREATE TABLE orders (id TEXT PRIMARY KEY, customer TEXT NOT NULL, total INTEGER NOT NULL);
CREATE INDEX orders_by_customer ON orders (customer);
