"""The Debian packages of the test cluster: named before they are installed, and nothing is left running."""

import os
import shutil
from pathlib import Path

import pytest

from e2e.cluster import packages
from e2e.cluster.errors import ClusterError

APT_GET = """#!/bin/sh
echo "$DEBIAN_FRONTEND $*" >> "{log}"
[ -e "{policy}" ] && echo "services are held back" >> "{log}"
case "$*" in
  *update*) touch "{folder}/updated" ;;
  *) [ -e "{folder}/updated" ] || {{ echo "E: Unable to locate package" >&2; exit 100; }} ;;
esac
"""


@pytest.fixture
def apt_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an apt-get on PATH that fails until it has updated, and a dpkg that has nothing; return the log."""
    log, policy = tmp_path / "apt.log", tmp_path / "policy-rc.d"
    for name, script in (
        ("apt-get", APT_GET.format(log=log, policy=policy, folder=tmp_path)),
        ("dpkg-query", "#!/bin/sh\nexit 1\n"),
    ):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(packages, "POLICY", policy)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return log


def test_missing_tells_installed_from_absent() -> None:
    """Dpkg is asked, so a package that was removed but left its configuration counts as missing."""
    absent = packages.missing(["dpkg", "no-such-package-at-all"])
    assert "no-such-package-at-all" in absent
    assert ("dpkg" in absent) == (shutil.which("dpkg-query") is None)


def test_names_are_printed_and_installed_without_questions(
    apt_log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list is refreshed once when the first try fails, and apt may not ask anything."""
    packages.ensure(["api"])
    assert "installing Debian packages: openssl" in capsys.readouterr().err
    install, update, again = [line for line in apt_log.read_text().splitlines() if "held back" not in line]
    assert install == again
    assert install.startswith("noninteractive ")
    assert install.endswith("install --yes --no-install-recommends openssl")
    assert update.endswith("update")


def test_services_are_held_back_while_installing(apt_log: Path) -> None:
    """Debian would start containerd and redis-server; our rule against it goes again afterwards."""
    packages.ensure(["node"])
    assert apt_log.read_text().count("services are held back") == len(apt_log.read_text().splitlines()) / 2
    assert not packages.POLICY.exists()


def test_an_owner_s_rule_about_services_is_kept(apt_log: Path) -> None:
    """A policy that was there before is neither replaced nor removed."""
    packages.POLICY.write_text("the owner's")
    packages.ensure(["api"])
    assert packages.POLICY.read_text() == "the owner's"
    assert apt_log.exists()


def test_without_root_the_command_to_run_is_named(apt_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried that cannot work."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match="sudo apt-get install --no-install-recommends openssl"):
        packages.ensure(["api"])
    assert not apt_log.exists()


def test_another_distribution_is_told_what_is_missing(apt_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no apt-get, the reader learns which packages' content to install."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ClusterError, match=r"no Debian.*redis-server"):
        packages.ensure(["stores"])
    assert not apt_log.exists()
