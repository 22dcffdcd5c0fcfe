"""A one-node Kubernetes in namespaces of its own, made of pinned binaries and Debian's containerd.

It has namespaces of its own (process, mount, network, UTS, IPC): no port, firewall rule, bridge, mount or
containerd of the machine is touched, and when its first process ends everything else in it ends too.
"""
