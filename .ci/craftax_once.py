"""Craftax, imported once for all notebooks that are tested.

Craftax's constants are JAX arrays. Importing it therefore starts JAX's backend, whose threads don't survive a fork, and
compiles sixty small operations, which takes 0.4 s even where all of them are in the compile cache. So the process that
is forked for each notebook imports Craftax's code alone, with a stand-in for every array. The arrays are those of a
child that imported Craftax as users do; the first import of Craftax in a notebook puts them in place.
"""

import copy
import functools
import importlib
import os
import pickle
import sys
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from forked import end_with
from jax._src.lax.lax import _convert_element_type

WHAT_PLAYS = """
    craftax.craftax_env craftax.craftax.envs.craftax_symbolic_env craftax.craftax_classic.envs.craftax_symbolic_env
""".split()


def import_craftax():
    "Imports what plays the two games; name -> module, of Craftax's modules that this loads"
    for name in WHAT_PLAYS:
        importlib.import_module(name)
    return {name: module for name, module in sys.modules.items() if name.split(".")[0] == "craftax"}


@dataclass
class Constant:
    "A JAX array that can be sent to another process"

    values: np.ndarray
    weak_type: bool

    @functools.cached_property  # two names of one array stay so: other constants would be another program to XLA
    def as_jax(self):
        return _convert_element_type(jax.device_put(self.values), weak_type=self.weak_type)


def send_constants(pipe):
    "Imports Craftax as users do, and writes (module, name) -> list of Constant, for all that is or holds arrays"
    as_constant = functools.cache(lambda array_id: Constant(np.asarray(arrays[array_id]), arrays[array_id].weak_type))
    arrays, constants = {}, {}
    for module_name, module in import_craftax().items():
        for name, value in vars(module).items():
            leaves = [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array)]
            arrays |= {id(leaf): leaf for leaf in leaves}
            if leaves:
                constants[module_name, name] = [as_constant(id(leaf)) for leaf in leaves]
    with os.fdopen(pipe, "wb") as file:
        pickle.dump(constants, file)
    return 0


def receive_constants():
    "What `send_constants` writes in a child"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        end_with(lambda: send_constants(writing))
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        constants = pickle.load(file)
    os.waitpid(child, 0)
    return constants


def import_code():
    "Imports Craftax with a stand-in for each array, and has `sys.modules` forget it; name -> module"
    stand_in = mock.MagicMock()
    functions = [name for name, value in vars(jnp).items() if callable(value) and not isinstance(value, type)]
    with mock.patch.multiple(jnp, **dict.fromkeys(functions, stand_in)), mock.patch.object(jax, "vmap", stand_in):
        modules = import_craftax()
    for name in modules:
        del sys.modules[name]
    return modules


def with_arrays(value, arrays):
    "A constant with arrays in the place of its stand-ins"
    leaves, structure = jax.tree.flatten(value)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, mock.MagicMock)]
    for place, array in zip(places, arrays, strict=True):
        leaves[place] = array
    return jax.tree.unflatten(structure, leaves)


class CraftaxFinder(MetaPathFinder, Loader):
    "Imports Craftax's modules: the first one puts the arrays in place and makes all of them known to Python"

    def __init__(self):
        self.constants, self.modules = receive_constants(), import_code()

    def find_spec(self, name, path=None, target=None):
        if name in self.modules:
            spec = copy.copy(self.modules[name].__spec__)
            spec.loader = self
            return spec

    def create_module(self, spec):
        for (module_name, name), arrays in self.constants.items():
            module = self.modules[module_name]
            setattr(module, name, with_arrays(getattr(module, name), [array.as_jax for array in arrays]))
        sys.modules.update(self.modules)
        return self.modules[spec.name]

    def exec_module(self, module):
        "Its code ran in `import_code`"


def import_craftax_once():
    "Has the children of this process import Craftax within milliseconds"
    sys.meta_path.insert(0, CraftaxFinder())
