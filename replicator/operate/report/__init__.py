"""``replicator report``: what a lake holds and how it fares, as one page.

``sales``, ``star`` and ``health`` each turn tables into figures; ``collect`` asks all of them, and no broken table
stops the others. ``*_charts`` draw the figures, ``page`` puts everything into one HTML file.
"""
