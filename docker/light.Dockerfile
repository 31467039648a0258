# What loads and runs compiled programs, and nothing else: no shell, no pip, no compiler. From the repository's root:
#
#     python -m build && docker build -f docker/light.Dockerfile -t landbridge .
#     docker run --rm -v "$PWD:/work" landbridge run model.lbx

FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -qy --no-install-recommends python3-pip

# Debian's Python and the libraries that it and numpy load, unpacked: what is left of a system without its tools. The
# record of each package stays, for programs that look for known weaknesses.
RUN mkdir -p /image/usr/bin /image/usr/lib /image/usr/lib64 /image/var/lib/dpkg/status.d /image/tmp /image/work /debs \
    && ln -s usr/bin usr/lib usr/lib64 /image && chmod 1777 /image/tmp && cd /debs \
    && apt-get download base-files netbase python3.11-minimal libpython3.11-minimal libpython3.11-stdlib media-types \
        libc6 libgcc-s1 libstdc++6 libbz2-1.0 libcrypt1 libexpat1 libffi8 liblzma5 libssl3 libuuid1 zlib1g \
    && for deb in *.deb; do \
        dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C /image --exclude=./usr/share/man \
            --exclude=./usr/share/lintian --exclude=./usr/lib/*/gconv --exclude=./usr/share/doc/*/changelog* \
        && dpkg-deb --field "$deb" > "/image/var/lib/dpkg/status.d/$(dpkg-deb --field "$deb" Package)" || exit 1; \
    done && echo 'landbridge:x:65532:65532::/tmp:/usr/sbin/nologin' > /image/etc/passwd \
    && echo 'landbridge:x:65532:' > /image/etc/group && ln -s python3.11 /image/usr/bin/python3

COPY dist/*.whl /dist/
RUN pip install --quiet --no-compile --root-user-action=ignore --target /image/usr/local/lib/python3.11/dist-packages \
        /dist/*.whl \
    && rm -r /image/usr/local/lib/python3.11/dist-packages/bin

# It works, and modules that runs import are stored as bytecode, since containers keep none.
RUN chroot /image python3 -m landbridge devices && chroot /image python3 -m landbridge run --help > /image/tmp/help \
    && rm -r /image/tmp/*

FROM scratch
COPY --from=build /image /
ENV HOME=/tmp LANG=C.UTF-8
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["python3", "-m", "landbridge"]
CMD ["--help"]
