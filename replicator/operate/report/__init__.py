"""``replicator report``: the contents and the health of a lake as one HTML page.

``sales``, ``star`` and ``health`` each compute figures from tables; ``collect`` runs all of them, and a broken table
does not stop the others. ``*_charts`` draw the figures, ``page`` puts everything into one HTML file.
"""
