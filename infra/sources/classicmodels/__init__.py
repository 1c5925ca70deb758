"""Classic Models: a trader of scale models, in eight tables. DDL, seeded rows, and a loader.

``shapes`` says what the tables look like, ``rows`` invents their rows, ``load`` puts rows into a server.
"""
