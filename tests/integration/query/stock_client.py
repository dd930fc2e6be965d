"""A client that knows nothing but the proto file: grpcio and Google's own messages."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import grpc_tools
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.json_format import MessageToDict, ParseDict

ROOT = Path(__file__).resolve().parents[3]
SERVICE = "mnemostream.v1.MemoryService"
FILES = ("mnemostream/v1/memory_service.proto", "google/rpc/status.proto", "google/rpc/error_details.proto")


def load_pool(scratch: Path) -> descriptor_pool.DescriptorPool:
    """What protoc makes of the proto files."""
    out = scratch / "descriptors.bin"
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}"),
        f"-I{Path(grpc_tools.__file__).parent / '_proto'}",
        *("--include_imports", f"--descriptor_set_out={out}"),
        *FILES,
    ]
    subprocess.run(command, check=True)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        pool.Add(file)
    return pool


class StockClient:
    """Takes and gives the JSON of messages, over native gRPC."""

    def __init__(self, pool: descriptor_pool.DescriptorPool, port: int, key: str | None) -> None:
        self.pool = pool
        self._port = port
        self._metadata = (("authorization", f"Bearer {key}"),) if key else ()

    async def call(self, method: str, request: dict[str, Any], timeout: float = 10.0) -> dict[str, Any]:
        """The answer with its zero values. Raises grpc.aio.AioRpcError."""
        described = self.pool.FindServiceByName(SERVICE).methods_by_name[method]
        asked = ParseDict(request, self.message(described.input_type.full_name)())
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self._port}") as channel:
            rpc = channel.unary_unary(
                f"/{SERVICE}/{method}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=self.message(described.output_type.full_name).FromString,
            )
            answer = await rpc(asked, metadata=self._metadata, timeout=timeout)
        return MessageToDict(answer, always_print_fields_with_no_presence=True)

    def message(self, name: str) -> Any:
        """The class of a message."""
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))

    def details(self, error: grpc.aio.AioRpcError) -> dict[str, dict[str, Any]]:
        """The details of an error by their type."""
        metadata = dict(error.trailing_metadata() or ())
        status = self.message("google.rpc.Status").FromString(metadata["grpc-status-details-bin"])
        details = {}
        for detail in status.details:
            name = detail.TypeName()
            details[name] = MessageToDict(self.message(name).FromString(detail.value))
        return details
