"""`cachewright operator`: turns the command line into settings and runs the process; called by `cli`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
import uuid
from typing import Final

import structlog
from prometheus_client import disable_created_metrics

from cachewright.controller.process import Operator, ProcessSettings
from cachewright.errors import CachewrightError
from cachewright.kube.connection import KubeConnection
from cachewright.logs import LOG_LEVELS, configure
from cachewright.reconcile.settings import OperatorSettings
from cachewright.render.settings import RenderSettings
from cachewright.stores.redis_record import open_record_store

DEFAULT_NAMESPACE: Final = "cachewright-system"
NOISY: Final = ("kopf", "aiohttp", "asyncio", "kubernetes", "kubernetes.aio")
"""Libraries that say at INFO and DEBUG what nobody wants to read, such as whole objects."""

EXAMPLES: Final = """\
examples:
  cachewright operator --gateway-image=example.com/cachewright:0.1.0
  cachewright operator --namespace=ml --namespace=search --gateway-image=example.com/cachewright:0.1.0
  cachewright operator --kubeconfig=./kubeconfig --no-leader-elect --log-format=console --gateway-image=dev
"""

log = structlog.get_logger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cachewright operator`."""
    where = parser.add_argument_group("where")
    where.add_argument(
        "--namespace",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="serve InferenceCaches of this namespace; repeatable; without it, of all namespaces",
    )
    where.add_argument("--kubeconfig", metavar="FILE", help="outside of a cluster; default: as kubectl")
    where.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    election = parser.add_argument_group("election")
    election.add_argument(
        "--leader-elect",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="let one replica at a time act (default: on)",
    )
    election.add_argument("--lease-name", default="cachewright-operator", metavar="NAME")
    election.add_argument("--lease-namespace", default=DEFAULT_NAMESPACE, metavar="NAMESPACE")
    rendering = parser.add_argument_group("what it runs")
    rendering.add_argument("--gateway-image", required=True, metavar="IMAGE")
    rendering.add_argument("--valkey-image", default=RenderSettings("").valkey_image, metavar="IMAGE")
    rendering.add_argument("--redis-image", default=RenderSettings("").redis_image, metavar="IMAGE")
    rendering.add_argument("--qdrant-image", default=RenderSettings("").qdrant_image, metavar="IMAGE")
    rendering.add_argument("--postgres-image", default=RenderSettings("").postgres_image, metavar="IMAGE")
    rendering.add_argument(
        "--cloudnative-pg-image", default=RenderSettings("").cloudnative_pg_image, metavar="IMAGE"
    )
    rendering.add_argument("--image-pull-policy", choices=["Always", "IfNotPresent", "Never"])
    rendering.add_argument(
        "--engine-stacks",
        action="store_true",
        help="objects of vLLM's production stack and of KServe may be patched (needs rights to them)",
    )
    process = parser.add_argument_group("process")
    process.add_argument(
        "--resync-seconds",
        type=_seconds,
        default=300.0,
        metavar="SECONDS",
        help="look at each object at least this often, whatever watches say (default: 300)",
    )
    process.add_argument(
        "--port", type=int, default=8080, help="for /healthz, /readyz and /metrics (default: 8080)"
    )
    process.add_argument("--log-format", choices=["json", "console"], default="json")
    process.add_argument("--log-level", choices=LOG_LEVELS, default="info")


def run(options: argparse.Namespace) -> int:
    """Run until SIGTERM and return the exit code: 0 after a clean stop, 1 after anything else."""
    configure(options.log_format, options.log_level, NOISY)
    logging.captureWarnings(capture=True)
    # One more series for each counter, of which nobody makes use.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    try:
        asyncio.run(_serve(_process_settings(options), _operator_settings(options)))
    except CachewrightError as error:
        log.error("operator failed", error=str(error))  # noqa: TRY400 - the sentence says it all
        return 1
    except Exception:
        log.exception("operator failed")
        return 1
    return 0


async def _serve(settings: ProcessSettings, reconcile_settings: OperatorSettings) -> None:
    connection = await KubeConnection.open(settings.kubeconfig, settings.context)
    try:
        await Operator(settings, reconcile_settings, connection, open_record_store, _leave_at_once).run()
    finally:
        await connection.aclose()


def _process_settings(options: argparse.Namespace) -> ProcessSettings:
    return ProcessSettings(
        namespaces=tuple(dict.fromkeys(options.namespace)),
        leader_elect=options.leader_elect,
        lease_namespace=options.lease_namespace,
        lease_name=options.lease_name,
        # A restarted container has the same host name, but is another process.
        identity=f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}",
        resync_seconds=options.resync_seconds,
        port=options.port,
        kubeconfig=options.kubeconfig,
        context=options.context,
    )


def _operator_settings(options: argparse.Namespace) -> OperatorSettings:
    return OperatorSettings(
        render=RenderSettings(
            gateway_image=options.gateway_image,
            valkey_image=options.valkey_image,
            redis_image=options.redis_image,
            qdrant_image=options.qdrant_image,
            postgres_image=options.postgres_image,
            cloudnative_pg_image=options.cloudnative_pg_image,
            image_pull_policy=options.image_pull_policy,
            operator_namespace=options.lease_namespace,
        ),
        engine_stacks=options.engine_stacks,
    )


def _seconds(text: str) -> float:
    value = float(text)
    if not 1 <= value <= 86400:
        raise argparse.ArgumentTypeError("must be between 1 and 86400")
    return value


def _leave_at_once(error: BaseException) -> None:
    """End the process without any clean-up that could wait: another replica may lead by now."""
    log.error("lease lost, exiting", error=str(error))
    logging.shutdown()
    sys.stdout.flush()
    os._exit(1)
