# The one image of cachewright: `cachewright operator`, `cachewright gateway`, `cachewright validate` …
# BASE_IMAGE may be any Linux image with Python >=3.11 as `python3` and its venv module.
ARG BASE_IMAGE=python:3.13-slim-bookworm

# Only what pyproject.toml says on dependencies, so that its other edits leave the next stage cached.
FROM ${BASE_IMAGE} AS requirements
WORKDIR /src
COPY pyproject.toml ./
RUN python3 -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); e = p["project"]["optional-dependencies"]; \
print(*p["project"]["dependencies"], *e["operator"], *e["gateway"], *e["vectors"], *e["embedder"], sep="\n"); \
open("build.txt", "w").write("\n".join(p["build-system"]["requires"]))' > run.txt \
 && touch -d @0 run.txt build.txt

FROM ${BASE_IMAGE} AS dependencies
WORKDIR /src
COPY --from=requirements /src/run.txt /src/build.txt ./
COPY constraints.txt ./
RUN python3 -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --constraint constraints.txt --requirement build.txt \
 && python3 -m venv --without-pip /opt/cachewright \
 && /opt/build/bin/pip --python /opt/cachewright/bin/python install \
      --no-cache-dir --only-binary :all: --constraint constraints.txt --requirement run.txt

# The project alone, into a tree of its own, so that a changed source is a small layer.
FROM dependencies AS project
COPY pyproject.toml LICENSE ./
COPY operator ./operator
RUN : > README.md \
 && /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/build/bin/pip --python /opt/cachewright/bin/python install \
      --no-cache-dir --no-deps --no-index --root /project /wheels/*.whl

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="cachewright" \
      org.opencontainers.image.description="Kubernetes operator and gateway for caching LLM and model-serving answers" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/cachewright/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin \
    PYTHONUNBUFFERED=1
COPY --from=dependencies /opt/cachewright /opt/cachewright
COPY --from=project /project/opt/cachewright /opt/cachewright
# Numeric, so that runAsNonRoot holds without runAsUser.
USER 65532:65532
ENTRYPOINT ["cachewright"]
