"""One writer per lake and stage: leases, in objects that are replaced only if they are unchanged since they were read
(0026).
"""
