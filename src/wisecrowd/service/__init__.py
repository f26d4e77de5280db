"""HTTP service that receives votes while they are cast and returns labels, worker quality and the tasks to ask about next.

``wisecrowd serve`` runs it. A request is acknowledged after its votes are on disk (`store`). Each vote updates its task
incrementally (`wisecrowd.em.live`), and separate processes refit the model to all votes (`refits`).
"""
