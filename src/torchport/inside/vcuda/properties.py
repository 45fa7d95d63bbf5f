"""What torch.cuda.get_device_properties answers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from torchport.hardware.gpus import GpuSpec
from torchport.inside.vcuda.builds import TORCH

# (threads a multiprocessor, shared KiB a multiprocessor, largest shared KiB a block) by compute capability,
# newest last: CUDA C++ Programming Guide, technical specifications.
_MULTIPROCESSOR = {
    (3, 0): (2048, 48, 48),
    (3, 7): (2048, 112, 48),
    (5, 0): (2048, 64, 48),
    (5, 2): (2048, 96, 48),
    (6, 0): (2048, 64, 48),
    (6, 1): (2048, 96, 48),
    (7, 0): (2048, 96, 96),
    (7, 5): (1024, 64, 64),
    (8, 0): (2048, 164, 163),
    (8, 6): (1536, 100, 99),
    (8, 7): (1536, 164, 163),
    (8, 9): (1536, 100, 99),
    (9, 0): (2048, 228, 227),
    (10, 3): (2048, 228, 227),
    (12, 0): (1536, 100, 99),
}
KIB = 1024


class DeviceProperties:
    """The fields of a CUDA build's ``_CudaDeviceProperties``, the newest version's."""

    def __init__(self, spec: GpuSpec, index: int, uuid: UUID) -> None:
        threads, shared_kib, shared_block_kib = _multiprocessor(spec.capability)
        self.name = spec.name
        self.major, self.minor = spec.capability
        self.total_memory = spec.memory_bytes
        self.multi_processor_count = spec.multi_processor_count
        self.max_threads_per_multi_processor = threads
        self.max_threads_per_block = 1024
        self.warp_size = 32
        self.regs_per_multiprocessor = 131072 if spec.capability == (3, 7) else 65536
        self.shared_memory_per_block = 48 * KIB
        self.shared_memory_per_block_optin = shared_block_kib * KIB
        self.shared_memory_per_multiprocessor = shared_kib * KIB
        self.L2_cache_size = spec.l2_bytes or 0
        self.clock_rate = int((spec.boost_clock_hz or 0) / 1e3)
        # Of clock and width only the product is known; the clock is one that cards of today have.
        self.memory_clock_rate = 1_500_000
        self.memory_bus_width = int(spec.bandwidth_bytes_per_s * 8 / (2 * self.memory_clock_rate * 1e3))
        self.is_integrated = int(spec.arch == "Ampere" and spec.capability == (8, 7))
        self.is_multi_gpu_board = int(spec.capability == (3, 7))
        self.gcnArchName = spec.name
        self.uuid = uuid
        self.pci_domain_id = 0
        self.pci_bus_id = index + 1
        self.pci_device_id = 0

    def __repr__(self) -> str:
        return f"_CudaDeviceProperties({', '.join(f'{name}={value}' for name, value in self._shown())})"

    def _shown(self) -> list[tuple[str, Any]]:
        shown: list[tuple[str, Any]] = [
            ("name", f"'{self.name}'"),
            ("major", self.major),
            ("minor", self.minor),
            ("total_memory", f"{self.total_memory >> 20}MB"),
            ("multi_processor_count", self.multi_processor_count),
        ]
        if TORCH >= (2, 5):
            shown.append(("uuid", self.uuid))
        if TORCH >= (2, 8):
            shown += [(name, getattr(self, name)) for name in ("pci_bus_id", "pci_device_id", "pci_domain_id")]
        if TORCH >= (2, 5):
            shown.append(("L2_cache_size", f"{self.L2_cache_size >> 20}MB"))
        return shown


def _multiprocessor(capability: tuple[int, int]) -> tuple[int, int, int]:
    known = [row for row in _MULTIPROCESSOR if row <= capability]
    return _MULTIPROCESSOR[max(known, default=min(_MULTIPROCESSOR))]
