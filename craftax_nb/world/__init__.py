"Written by hand: Craftax starts JAX when it is imported, so what JAX reads once, when it starts, is set before"

from ..runs.processes import prepare_for_craftax

prepare_for_craftax(__name__, ("names",))
