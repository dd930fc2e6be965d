"""Models that run here, from packages: nothing leaves the machine."""

import os

# onnxruntime reports its use to its maker, from its import on and over the network, unless this is set before.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
