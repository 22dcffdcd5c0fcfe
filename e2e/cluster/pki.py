"""A certificate authority for one cluster, made with openssl, and the kubeconfigs whose identities it signs.

Used by the API server of the API tests and by the node; keys stay in the cluster's own folder.
"""

import base64
import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from e2e.cluster.errors import ClusterError

VALID_DAYS: Final = "30"
CA_EXTENSIONS: Final = (
    "basicConstraints=critical,CA:TRUE",
    "keyUsage=critical,keyCertSign,cRLSign",
    "subjectKeyIdentifier=hash",
)
LEAF_EXTENSIONS: Final = (
    "basicConstraints=critical,CA:FALSE",
    "keyUsage=critical,digitalSignature",
    "subjectKeyIdentifier=hash",
    "authorityKeyIdentifier=keyid",
)
"""What RFC 5280 asks for; Python from 3.13 on refuses certificates that leave any of it out."""

CONFIG: Final = "[req]\ndistinguished_name = dn\n[dn]\n"
"""Openssl's default configuration would add extensions of its own to ours."""


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A self-signed authority in a folder; made on first use, read again afterwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pair = KeyPair(folder / "ca.crt", folder / "ca.key")
        if not self.pair.key.exists():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
            (folder / "openssl.cnf").write_text(CONFIG)
            self._request(self.pair, "/CN=test-cluster-ca", CA_EXTENSIONS, signed=False)

    def client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """Issue a client certificate: Kubernetes reads CN as the user and each O as a group."""
        subject = "".join(f"/O={_escaped(group)}" for group in groups) + f"/CN={_escaped(user)}"
        return self._issue(f"client-{user}", subject, ["extendedKeyUsage=clientAuth"])

    def server(self, name: str, hosts: Iterable[str], addresses: Iterable[str]) -> KeyPair:
        """Issue a serving certificate for DNS names and IP addresses."""
        names = ",".join([*(f"DNS:{host}" for host in hosts), *(f"IP:{address}" for address in addresses)])
        return self._issue(
            name, f"/CN={_escaped(name)}", ["extendedKeyUsage=serverAuth", f"subjectAltName={names}"]
        )

    def signing_key(self, name: str) -> Path:
        """Make (once) a private key that signs service account tokens."""
        key = self.folder / f"{name}.key"
        if not key.exists():
            _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key))
            key.chmod(0o600)
        return key

    def _issue(self, name: str, subject: str, extensions: list[str]) -> KeyPair:
        stem = name.replace("/", "_").replace(":", "_")
        pair = KeyPair(self.folder / f"{stem}.crt", self.folder / f"{stem}.key")
        self._request(pair, subject, [*LEAF_EXTENSIONS, *extensions], signed=True)
        return pair

    def _request(self, pair: KeyPair, subject: str, extensions: Iterable[str], *, signed: bool) -> None:
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]
        issuer = ["-CA", str(self.pair.certificate), "-CAkey", str(self.pair.key)] if signed else []
        added = [part for extension in extensions for part in ("-addext", extension)]
        files = ["-keyout", str(pair.key), "-out", str(pair.certificate)]
        config = ["-config", str(self.folder / "openssl.cnf")]
        _openssl(
            "req", "-x509", "-days", VALID_DAYS, "-subj", subject, *config, *curve, *issuer, *added, *files
        )
        pair.key.chmod(0o600)


def write_kubeconfig(target: Path, server: str, authority: Path, user: Mapping[str, str]) -> Path:
    """Write a kubeconfig with one context; as JSON, which is YAML, so no library is needed."""
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "cluster",
                "cluster": {"server": server, "certificate-authority-data": _encoded(authority)},
            }
        ],
        "users": [{"name": "user", "user": dict(user)}],
        "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": "user"}}],
        "current-context": "cluster",
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch(mode=0o600)
    target.write_text(json.dumps(content, indent=1) + "\n")
    return target


def certificate_user(pair: KeyPair) -> dict[str, str]:
    """Return the user entry of a kubeconfig that authenticates by certificate."""
    return {"client-certificate-data": _encoded(pair.certificate), "client-key-data": _encoded(pair.key)}


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("/", "\\/").replace("+", "\\+")


def _openssl(*arguments: str) -> None:
    try:
        subprocess.run(
            ["openssl", *arguments], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        raise ClusterError("openssl is not installed: run `python -m e2e.cluster packages api`") from error
    except subprocess.CalledProcessError as error:
        raise ClusterError(f"openssl {arguments[0]} failed: {error.stderr.strip()}") from error
