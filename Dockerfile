# The service of wisecrowd: a user without rights, and nothing is written outside of /data and /tmp.
#   docker build -t wisecrowd .
#   docker run --read-only --tmpfs /tmp -v votes:/data -e WISECROWD_TOKEN -p 127.0.0.1:8765:8765 wisecrowd

FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/wisecrowd \
    && /opt/wisecrowd/bin/pip install --no-cache-dir -c constraints.txt ".[postgres]"

FROM python:3.12-slim
RUN groupadd --system --gid 10001 wisecrowd \
    && useradd --system --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin wisecrowd \
    && install -d -o 10001 -g 10001 -m 0700 /data
COPY --from=build /opt/wisecrowd /opt/wisecrowd
# Compiled kernels are kept with the data, because the installation cannot be written.
ENV PATH=/opt/wisecrowd/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/data/.cache
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/health', timeout=4)"]
ENTRYPOINT ["wisecrowd"]
# Other containers and the published port reach the service; put a proxy with TLS in front of it.
CMD ["serve", "/data/votes.db", "--host", "0.0.0.0", "--insecure", "--log-format", "json"]
