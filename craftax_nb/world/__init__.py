"Written by hand: Craftax starts JAX when it is imported, so what JAX may take of a GPU is said before"

from ..jobs.processes import share_gpu

share_gpu()
