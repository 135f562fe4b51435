"Written by hand: Craftax starts JAX when it is imported, so what JAX reads once, when it starts, is said before"

from ..runs.processes import set_compiler_flags, share_gpu, use_compile_cache

share_gpu()
set_compiler_flags()
use_compile_cache()
