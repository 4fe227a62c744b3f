"""Twenty devices are asked twice over connections of nornir's netmiko plugin.

asking_devices.py MODE PORT
"""

import sys

mode, port = sys.argv[1:]
if mode == "green":
    from gevent import monkey

    monkey.patch_all()

import logging  # noqa: E402
import warnings  # noqa: E402

logging.disable()
warnings.simplefilter("ignore")

from nornir.core import Nornir  # noqa: E402
from nornir.core.inventory import (  # noqa: E402
    ConnectionOptions,
    Defaults,
    Groups,
    Host,
    Hosts,
    Inventory,
)
from nornir.core.plugins.connections import ConnectionPluginRegister  # noqa: E402

from ungil.fanout.nornir import UngilRunner  # noqa: E402

ConnectionPluginRegister.auto_register()

from nornir_netmiko.tasks import netmiko_send_command  # noqa: E402

platform, extras = "generic_telnet", {"auth_timeout": 60}


def ask(task, command):
    return task.run(netmiko_send_command, command_string=command, expect_string="router#").result


defaults = Defaults(username="me", password="secret", port=int(port), platform=platform)
defaults.connection_options["netmiko"] = ConnectionOptions(extras=extras)
addresses = [f"127.0.7.{number}" for number in range(1, 21)]
hosts = Hosts({a: Host(a, hostname=a, defaults=defaults) for a in addresses})
inventory = Inventory(hosts=hosts, groups=Groups(), defaults=defaults)
with Nornir(inventory, runner=UngilRunner(mode=mode, timeout=60)) as nr:
    for command in "show version", "show clock":
        result = nr.run(ask, command=command)
        assert not result.failed, result[addresses[0]][0].result
        for address, results in result.items():
            assert f"answer of {address}" in results[0].result, results[0].result
print("done")
