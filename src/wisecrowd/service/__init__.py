"""A service that takes votes as they are cast and answers what is true, whom to trust and what to ask next.

`wisecrowd serve` runs it. What is told is on the disk before it is acknowledged (`store`), taken in at the cost of the tasks
that it is about (`wisecrowd.em.live`), and fitted to anew in a process of its own (`refitting`).
"""
