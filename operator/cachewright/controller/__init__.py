"""The operator's process: watches become keys in a queue, keys become passes of reconcile."""
