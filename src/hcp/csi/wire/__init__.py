"""Messages of the protocols: `csi_pb2` and `registration_pb2`, made by `generate` when hcp is installed or packed."""
