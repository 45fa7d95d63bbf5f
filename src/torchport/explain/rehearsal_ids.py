"""What a rehearsal can find: one row an id. The English stands here, translations in ``locale/``.

``statement`` is the one sentence that a finding says; a name in braces is filled in from what was observed,
and a sentence that lacks a part gives way to the title. ``cuda`` says what a real card does, ``fix`` what to
do where the run itself does not tell.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchport.finding import Severity
from torchport.text import mark

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


@dataclass(frozen=True, slots=True)
class RehearsalId:
    """One kind of finding. Texts are English; show them through ``torchport.text._``."""

    id: str
    slug: str
    severity: Severity
    title: str
    statement: str
    why: str
    cuda: str
    fix: str


_ROWS = (
    RehearsalId(
        "R101",
        "device-mismatch",
        ERROR,
        mark("Tensors of one operation live on different devices"),
        mark("{offender} meets {other} in `{call}`"),
        mark(
            "An operator reads all its tensors where it runs. Nothing moves by itself between host and GPU."
        ),
        mark("Raises RuntimeError; a CPU tensor without dimensions is let through, and not everywhere."),
        mark("Create the tensor on the device of the one it meets, or move it there once."),
    ),
    RehearsalId(
        "R102",
        "cuda-to-numpy",
        ERROR,
        mark("A CUDA tensor is read as a NumPy array"),
        mark("{offender} is read as a NumPy array"),
        mark("NumPy reads host memory; a tensor on the GPU has none."),
        mark("Raises TypeError."),
        mark("Copy it to the host first: `.detach().cpu().numpy()`."),
    ),
    RehearsalId(
        "R103",
        "index-on-cuda",
        ERROR,
        mark("A CPU tensor is indexed with a CUDA tensor"),
        mark("{other} is indexed with {offender}"),
        mark("A CUDA tensor takes an index from the CPU, a CPU tensor takes none from the GPU."),
        mark("Raises RuntimeError."),
        mark("Move the indexed tensor to the GPU, or bring the index to the CPU with `.cpu()`."),
    ),
    RehearsalId(
        "R104",
        "host-only-argument",
        ERROR,
        mark("An argument that has to stay on the CPU is on the GPU"),
        mark("{offender} has to stay on the CPU for `{call}`"),
        mark("Some arguments are read by host code, such as the lengths of a packed sequence."),
        mark("Raises RuntimeError."),
        mark("Keep it on the CPU, or give `.cpu()` of it."),
    ),
    RehearsalId(
        "R105",
        "generator-device",
        ERROR,
        mark("A random generator is on another device than what it fills"),
        mark("a random generator draws for another device than its own"),
        mark("A generator's state lives where its numbers are made."),
        mark("Raises RuntimeError."),
        mark('Make it with `torch.Generator(device="cuda")`, or draw on the CPU and move the result.'),
    ),
    RehearsalId(
        "R106",
        "invalid-device",
        ERROR,
        mark("A device is asked for that this machine does not have"),
        mark("{device} is asked for; GPUs of this machine: {gpus}"),
        mark("A device number that holds on one machine need not exist on the next."),
        mark("Raises RuntimeError, or torch.AcceleratorError: invalid device ordinal."),
        mark('Use `"cuda"` or the local rank instead of a fixed number, or rehearse with `--gpus`.'),
    ),
    RehearsalId(
        "R107",
        "cuda-after-fork",
        ERROR,
        mark("CUDA is used in a forked process"),
        mark("CUDA is used in a forked process"),
        mark("A CUDA context does not survive fork; DataLoader workers are forked by default on Linux."),
        mark("Raises RuntimeError in the child."),
        mark("Return CPU tensors from the Dataset and move the batch in the loop, or start with `spawn`."),
    ),
    RehearsalId(
        "R108",
        "gradient-device",
        ERROR,
        mark("A gradient is on another device than its tensor"),
        mark("a gradient is on the wrong device: {offender} meets {other}"),
        mark("A gradient lives where its tensor lives."),
        mark("Raises RuntimeError when the gradient is assigned or handed on."),
        mark("Return the gradient on the device of the input, or move the model before its gradients exist."),
    ),
    RehearsalId(
        "R109",
        "not-on-cuda",
        ERROR,
        mark("The CPU can compute this and CUDA cannot"),
        mark("`{call}` of {dtype} works on the CPU and not on CUDA"),
        mark("CUDA has no kernel for some operators and types, integer matrix products among them."),
        mark("Raises RuntimeError or NotImplementedError."),
        mark("Compute it in a type that CUDA supports, or on the CPU."),
    ),
    RehearsalId(
        "R110",
        "device-side-assert",
        ERROR,
        mark("An index is out of range on the GPU"),
        mark("an index is out of range in `{call}`"),
        mark("The GPU notices it late, at another line, and the process cannot use the GPU afterwards."),
        mark("Stops with `CUDA error: device-side assert triggered` at some later line."),
        mark("Check labels and indices against the number of classes or rows before they go to the GPU."),
    ),
    RehearsalId(
        "R111",
        "pin-cuda-tensor",
        ERROR,
        mark("A CUDA tensor is pinned"),
        mark("{offender} is pinned, and only host memory can be"),
        mark("Pinned memory is host memory that the GPU can read; a tensor on the GPU has nothing to pin."),
        mark("Raises RuntimeError."),
        mark("Pin before the move, or leave `pin_memory` out where batches are made on the GPU."),
    ),
    RehearsalId(
        "R112",
        "module-device",
        ERROR,
        mark("A module is not on the device that it is used with"),
        mark("{offender} belongs to a module that is not on {device}"),
        mark(
            "DataParallel and DistributedDataParallel want all parameters and buffers on their first device."
        ),
        mark("Raises RuntimeError or ValueError."),
        mark("Move the whole module with `.to(device)` before it is wrapped or called."),
    ),
    RehearsalId(
        "R201",
        "sync-in-step",
        INFO,
        mark("The host waits for the GPU in every step"),
        mark("{op} waits for the GPU: {count} times in {steps} steps"),
        mark("While the host waits it issues no work, and the GPU runs dry after each wait."),
        mark("Works, and costs time."),
        mark("Keep values on the GPU and read them every so many steps."),
    ),
    RehearsalId(
        "R202",
        "pageable-non-blocking",
        WARNING,
        mark("non_blocking=True on memory that is not pinned"),
        mark("{offender} is copied with non_blocking=True and is not pinned"),
        mark(
            "From pageable memory the driver copies through a buffer of its own, and the host waits for that."
        ),
        mark("Works, and is not asynchronous."),
        mark("Give the DataLoader `pin_memory=True`, or pin the tensor."),
    ),
    RehearsalId(
        "R203",
        "repeated-transfer",
        WARNING,
        mark("The same tensor is moved to the GPU in every step"),
        mark("{offender} does not change and is moved to the GPU again and again"),
        mark("A transfer costs time on the bus and waits for the host."),
        mark("Works, and costs time."),
        mark("Move it once before the loop, or register it as a buffer of the module."),
    ),
    RehearsalId(
        "R204",
        "unsynchronised-read",
        ERROR,
        mark("A result is read before the GPU is done"),
        mark("{offender} is read before its copy to the host has ended"),
        mark('`.to("cpu", non_blocking=True)` returns at once; the numbers come later.'),
        mark("Gives wrong numbers now and then, without an error."),
        mark(
            "Call `torch.cuda.synchronize()` or an event's `synchronize()` first, or leave non_blocking out."
        ),
    ),
    RehearsalId(
        "R301",
        "out-of-memory",
        ERROR,
        mark("The tensors do not fit on the card"),
        mark("the tensors do not fit on {device}"),
        mark("Live tensors alone exceed the card; a real run needs more still, for kernels and fragments."),
        mark("Raises torch.OutOfMemoryError."),
        mark("Use a smaller batch, activation checkpointing, a smaller type or a larger card."),
    ),
    RehearsalId(
        "R302",
        "memory-grows",
        WARNING,
        mark("Memory grows with every step"),
        mark("memory on {device} grows by {amount} a step, from step {first} to step {last}"),
        mark(
            "Something keeps the tensors of each step, often a list of losses with the graph that made them."
        ),
        mark("Works until the card is full."),
        mark("Keep numbers instead of tensors: `loss.item()`, or `loss.detach()` where it stays on the GPU."),
    ),
    RehearsalId(
        "R401",
        "collective-mismatch",
        ERROR,
        mark("The ranks call different collectives"),
        mark("the ranks call different collectives: {ranks}"),
        mark("A collective ends when all ranks call the same one with the same shapes."),
        mark("Hangs until the watchdog ends it after ten minutes, or mixes up data."),
        mark("Let all ranks take the same branch, and give all of them the same number of batches."),
    ),
    RehearsalId(
        "R402",
        "rank-died",
        ERROR,
        mark("A rank has died while others wait for it"),
        mark("rank {rank} has died while others wait for it"),
        mark("A collective needs every rank."),
        mark("Hangs until the watchdog ends it after ten minutes."),
        mark("Repair what ended that rank; its own output is in the run's logs."),
    ),
    RehearsalId(
        "R403",
        "host-tensor-to-nccl",
        ERROR,
        mark("A CPU tensor is given to NCCL"),
        mark("{offender} is given to `{call}`, and NCCL takes CUDA tensors only"),
        mark("NCCL moves data between GPUs and cannot read host memory."),
        mark("Raises RuntimeError."),
        mark("Move the tensor to the GPU of its rank, or use a gloo group for host tensors."),
    ),
    RehearsalId(
        "R404",
        "duplicate-gpu",
        ERROR,
        mark("Two ranks use the same GPU"),
        mark("ranks {ranks} use the same GPU"),
        mark("Without set_device every process takes cuda:0."),
        mark("NCCL stops with `Duplicate GPU detected`."),
        mark('Call `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before the first use of the GPU.'),
    ),
    RehearsalId(
        "R405",
        "rank-hung",
        ERROR,
        mark("A rank does not come to a collective"),
        mark("rank {rank} does not come to the collective that others wait in"),
        mark("A collective ends when all ranks call it."),
        mark("Hangs until the watchdog ends it after ten minutes."),
        mark("Look at what that rank does instead; its place is below."),
    ),
    RehearsalId(
        "R501",
        "compile-ran-eager",
        INFO,
        mark("torch.compile ran eagerly"),
        mark("torch.compile ran eagerly: compiled kernels are not rehearsed"),
        mark("A compiler makes kernels for a real card."),
        mark("Compiles at the first call."),
        mark("Nothing to do; graph breaks and compile time show on the card only."),
    ),
    RehearsalId(
        "R502",
        "custom-kernel",
        INFO,
        mark("A custom CUDA kernel cannot be rehearsed"),
        mark("{what} cannot be rehearsed"),
        mark("Its code is made for a GPU and there is none."),
        mark("Runs it."),
        mark("Offer a way around it without a GPU, or rehearse up to this line."),
    ),
    RehearsalId(
        "R503",
        "triton-kernel",
        INFO,
        mark("A Triton kernel cannot be rehearsed"),
        mark("{what} cannot be rehearsed"),
        mark("Its code is made for a GPU and there is none."),
        mark("Compiles and runs it."),
        mark("Offer a way around it without a GPU, or rehearse up to this line."),
    ),
    RehearsalId(
        "R504",
        "gpu-not-used",
        INFO,
        mark("This machine has a GPU, and the rehearsal did not use it"),
        mark("this machine has a GPU, and the rehearsal did not use it: {what}"),
        mark("A rehearsal runs on virtual GPUs only, so that it says the same everywhere."),
        mark("Does not apply."),
        mark("Nothing to do; run the script itself to use the card."),
    ),
    RehearsalId(
        "R505",
        "stand-in-value",
        INFO,
        mark("A stand-in was given where a value was asked for"),
        mark("{what} gave a stand-in value"),
        mark("There is no card to measure, and with shapes only there are no numbers either."),
        mark("Gives the real value."),
        mark("Conclude nothing from it; without `--shapes-only` a rehearsal follows the numbers."),
    ),
    RehearsalId(
        "R506",
        "random-stream",
        INFO,
        mark("Random numbers are drawn on the GPU"),
        mark("random numbers are drawn on the GPU ({count} ×), and a real card draws others"),
        mark("A card has a generator of its own; the rehearsal draws from the CPU's stream."),
        mark("Draws other numbers from the same seed."),
        mark(
            "Nothing to do, unless the numbers have to be the same: then draw on the CPU and move the result."
        ),
    ),
    RehearsalId(
        "R507",
        "subprocess-not-followed",
        INFO,
        mark("What goes on in another process is not rehearsed"),
        mark("{what} is not followed into another process"),
        mark("The virtual GPU lives in the Python processes that the rehearsal started."),
        mark("Works there too."),
        mark("Rehearse that program by itself."),
    ),
    RehearsalId(
        "R508",
        "cuda-graph",
        INFO,
        mark("CUDA graphs are not captured"),
        mark("{what} is not captured in a rehearsal"),
        mark("Capture and replay need a real card."),
        mark("Captures once and replays the same memory."),
        mark("Rehearse with graphs switched off; what capture forbids shows on the card only."),
    ),
)

REHEARSAL_IDS = {row.id: row for row in _ROWS}
