"""csi.kubevirt.io, the storage driver of hosted clusters: volumes of the infra cluster, plugged into running machines.

The controller side runs beside the control plane and holds the only credential; the node side runs on the machines and
holds none. What a volume is called is decided here alone, so both sides find it by its handle.
"""

DRIVER = "csi.kubevirt.io"
