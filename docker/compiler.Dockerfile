# The compiler, and what runs programs. From the repository's root:
#
#     python -m build && docker build -f docker/compiler.Dockerfile -t landbridge-compiler .
#     docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" landbridge-compiler compile model.onnx -o model.lbx

FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -qy --no-install-recommends python3-venv
COPY dist/*.whl /dist/
RUN python3 -m venv /opt/landbridge \
    && /opt/landbridge/bin/pip install --quiet --no-compile "$(echo /dist/*.whl)[compile]" \
    && /opt/landbridge/bin/pip uninstall --quiet --yes setuptools pip

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -qy --no-install-recommends python3 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/landbridge /opt/landbridge
# It works, and modules that compiles import are stored as bytecode, since containers keep none.
RUN /opt/landbridge/bin/landbridge devices && /opt/landbridge/bin/python -c 'import landbridge; landbridge.compile'
ENV HOME=/tmp LANG=C.UTF-8 PATH=/opt/landbridge/bin:/usr/bin:/bin
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["landbridge"]
CMD ["--help"]
