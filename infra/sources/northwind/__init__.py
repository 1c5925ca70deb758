"""Northwind: a trader of food in PostgreSQL, eleven tables and an outbox kept by triggers. DDL, seeded rows, a loader.

``shapes`` says what the tables look like, ``rows`` invents their rows, ``load`` puts rows and outbox into a server.
"""
