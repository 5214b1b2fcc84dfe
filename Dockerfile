# The image: one static program and its bill of materials in an empty root. `make image` builds it; nothing runs during
# the build, so it needs no network and no emulation for another architecture. The context is a folder with `tollgate`
# (static, for the image's architecture), `tollgate.cdx.json` and `LICENSE`.
#
# It runs as a stranger with a read-only root: it writes nothing unless --cert-dir names a volume.
FROM scratch

ARG VERSION
ARG REVISION
ARG CREATED
ARG SOURCE
LABEL org.opencontainers.image.title="tollgate" \
      org.opencontainers.image.description="Admission control for Kubernetes device taints and tolerations" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}"

COPY LICENSE tollgate.cdx.json /usr/share/doc/tollgate/
COPY tollgate /tollgate

# Numbers, not names: there is no /etc/passwd, and runAsNonRoot of a pod needs a number. The user of manifests/base.
USER 65532:65532
EXPOSE 8443 8081
ENTRYPOINT ["/tollgate"]
CMD ["serve"]
