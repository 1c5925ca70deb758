"""One tick of silver up to its tables: finding new records, assigning them to tables, checking their order, and holding
back incomplete transactions.
"""
