"""One writer per lake and stage: who holds it, in objects that change only where they are as they were read (0026)."""
