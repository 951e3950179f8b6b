"""The pages."""

import sqlite3

from flask import Flask, request

app = Flask(__name__)


def database() -> sqlite3.Connection:
    return sqlite3.connect("shop.db")


@app.get("/orders")
def orders() -> list[tuple]:
    """Return the orders of the customer that the request names."""
    customer = request.args["customer"]
    query = f"SELECT * FROM orders WHERE customer = '{customer}'"
    return database().execute(query).fetchall()


@app.get("/products")
def products() -> list[tuple]:
    """Products by a word in their title."""
    word = request.args["word"]
    return database().execute("SELECT * FROM products WHERE title LIKE ?", (word,)).fetchall()
