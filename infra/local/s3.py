"""An S3-compatible server: MinIO if it is on the PATH, else moto, which keeps its objects in memory only."""

from __future__ import annotations

import http.client
import shutil
import sys
from typing import TYPE_CHECKING

from pydantic import SecretStr

from replicator import s3
from replicator.config.settingkeys import S3Keys

if TYPE_CHECKING:
    from infra.local.home import Home
    from infra.local.parts import Parts
    from infra.local.settings import Settings


class S3:
    """The server and its bucket."""

    name = "s3"
    sections: tuple[str, ...] = ()

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home = home
        self._settings = settings
        self.ports: tuple[str, ...] = ("s3", "s3-console")

    def start(self, parts: Parts) -> None:  # noqa: ARG002 - it is made of no JAR
        """Start MinIO or moto."""
        folder = self._home.folder(self.name)
        port, login = self._home.port("s3"), self._settings.s3
        minio = shutil.which("minio")
        if minio is None:
            server = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
            self._home.process(self.name).start(server)
            return
        console = f"127.0.0.1:{self._home.port('s3-console')}"
        server = [minio, "server", str(folder / "data"), "--address", f"127.0.0.1:{port}", "--console-address", console]
        credentials = {"MINIO_ROOT_USER": login.user, "MINIO_ROOT_PASSWORD": login.password}
        self._home.process(self.name).start(server, env=credentials)

    def ready(self) -> bool:
        """Whether it speaks HTTP."""
        client = http.client.HTTPConnection("127.0.0.1", self._home.port("s3"), timeout=2)
        try:
            client.request("HEAD", "/")
            return bool(client.getresponse().status)
        except http.client.HTTPException:
            return False
        finally:
            client.close()

    def finish(self) -> None:
        """Create the bucket unless it is there."""
        bucket, login = self._settings.s3_bucket, self._settings.s3
        endpoint = f"http://127.0.0.1:{self._home.port('s3')}"
        keys = S3Keys(
            endpoint=endpoint,
            access_key=SecretStr(login.user),
            secret_key=SecretStr(login.password),
            region=self._settings.s3_region,
            path_style=True,
        )
        client = s3.client(keys)
        with s3.translate_errors(endpoint, "create a bucket", "Look into its log."):
            if bucket not in {known["Name"] for known in client.list_buckets()["Buckets"]}:
                client.create_bucket(Bucket=bucket)
