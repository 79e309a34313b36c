"""nginx with nchan under the load of `bench fanout`: the rival, with the settings that its documents recommend."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from triplewire.bench.broker import free_port
from triplewire.bench.fanout_links import more_files
from triplewire.bench.fanout_load import Target
from triplewire.bench.fanout_servers import HOST, Server, request
from triplewire.model.errors import Unavailable

_START_SECONDS = 10.0

_CONFIGURATION = """
load_module {module};
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log warn;
worker_processes {workers};
worker_rlimit_nofile {files};
events {{ worker_connections {connections}; use epoll; multi_accept on; }}
http {{
  access_log off;
  nchan_shared_memory_size 256M;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  client_body_buffer_size 64k;
  keepalive_requests 1000000;
  tcp_nodelay on;
  server {{
    listen {host}:{port} backlog=4096{spread};
    location = /listen {{
      nchan_subscriber eventsource;
      nchan_channel_id bench;
      nchan_subscriber_first_message newest;
    }}
    location = /publish {{
      nchan_publisher;
      nchan_channel_id bench;
      nchan_message_buffer_length 100;
      nchan_message_timeout 10m;
    }}
  }}
}}
"""


def available(path: str | None = None) -> tuple[str, str]:
    """nginx, looked for in a path like that of the shell, and nchan's module. Raises Unavailable without them."""
    nginx = shutil.which("nginx", path=path or f"{os.defpath}:{os.environ.get('PATH', '')}:/usr/sbin")
    if nginx is None:
        raise Unavailable("nginx is not installed; on Debian: apt install nginx-light libnginx-mod-nchan")
    said = subprocess.run([nginx, "-V"], capture_output=True, text=True, check=True).stderr
    found = re.search(r"--modules-path=(\S+)", said)
    module = Path(found[1] if found else "/usr/lib/nginx/modules") / "ngx_nchan_module.so"
    if not module.exists():
        raise Unavailable(f"nginx has no nchan at {module}; on Debian: apt install libnginx-mod-nchan")
    return nginx, str(module)


@contextmanager
def nchan(workers: int) -> Iterator[Server]:
    """nginx in a directory that is thrown away. The time of its workers is counted, not that of their master."""
    (nginx, module), port, files = available(), free_port(), more_files()
    with tempfile.TemporaryDirectory(prefix="triplewire-nchan-") as directory:
        # The workers of a master that is root are somebody else.
        Path(directory).chmod(0o755)
        configuration = Path(directory) / "nginx.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                module=module,
                directory=directory,
                workers=workers,
                files=files,
                connections=files - 50,
                host=HOST,
                port=port,
                # Otherwise the worker that is quickest takes nearly all of the clients.
                spread=" reuseport" if workers > 1 else "",
            )
        )
        process = subprocess.Popen(
            [nginx, "-p", directory, "-c", str(configuration)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            pids = _started(process, workers, port)
            yield Server([Target((HOST, port), request("/listen", port), "/publish")], pids)
        finally:
            process.terminate()
            process.communicate(timeout=20)


def _started(process: subprocess.Popen[bytes], workers: int, port: int) -> list[int]:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        children = psutil.Process(process.pid).children()
        if len(children) >= workers and _open(process.pid, port):
            return [child.pid for child in children]
        time.sleep(0.05)
    process.kill()
    raise Unavailable(f"nginx does not start: {process.communicate()[1].decode(errors='replace')[-500:]}")


def _open(pid: int, port: int) -> bool:
    found = psutil.Process(pid).net_connections("tcp4")
    return any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in found)
