"""What the rules for several processes find in code that looks alike, and what they leave alone."""

import textwrap

import pytest

from torchport.check.engine import check_source
from torchport.check.rules import rules
from torchport.check.source import Source

IMPORTS = """\
import os
import random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
"""
OURS = [loaded for loaded in rules() if "C301" <= loaded.rule.id <= "C329"]

CASES = [
    # DataParallel
    ("if isinstance(model, nn.DataParallel):\n    model = model.module", "dataparallel", 0),
    ("class DataParallel:\n    pass\nDataParallel()", "dataparallel", 0),
    # the sampler
    (
        """
        def run(data, rank, model, optimizer):
            model = DDP(model.to(rank), device_ids=[rank])
            shard = data[rank::8]
            for x in DataLoader(shard, shuffle=True):
                model(x).mean().backward()
                optimizer.step()
        """,
        "ddp-missing-sampler",
        0,
    ),
    (
        """
        def run(data, held_out, rank, model):
            model = DDP(model.to(rank), device_ids=[rank])
            for x in DataLoader(held_out):
                model(x)
        """,
        "ddp-missing-sampler",
        0,
    ),
    (
        """
        def run(data, step, epochs):
            sampler = DistributedSampler(data)
            loader = DataLoader(data, sampler=sampler)
            for epoch in range(epochs):
                loader.sampler.set_epoch(epoch)
                for x in loader:
                    step(x)
        """,
        "sampler-no-set-epoch",
        0,
    ),
    (
        """
        def run(data, step):
            loader = DataLoader(data, sampler=DistributedSampler(data))
            for x in loader:
                step(x)
        """,
        "sampler-no-set-epoch",
        0,
    ),
    (
        """
        def run(data, train, epochs):
            # no set_epoch
            loader = DataLoader(data, sampler=DistributedSampler(data))
            for epoch in range(epochs):
                train(loader, epoch)
        """,
        "sampler-no-set-epoch",
        1,
    ),
    ("def f(data, sampler):\n    return DataLoader(data, shuffle=True, sampler=sampler)", "sampler-and-shuffle", 0),
    ("loader = DataLoader([], shuffle=True, sampler=None)", "sampler-and-shuffle", 0),
    (
        """
        def f(data, several):
            sampler = None
            if several:
                sampler = DistributedSampler(data)
            return DataLoader(data, shuffle=True, sampler=sampler)
        """,
        "sampler-and-shuffle",
        0,
    ),
    # the device
    (
        """
        def main(model):
            dist.init_process_group("nccl")
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            return DDP(model.to(device))
        """,
        "ddp-no-set-device",
        1,
    ),
    (
        """
        def main(args, model):
            if args.distributed:
                dist.init_process_group("nccl")
                device = torch.device("cuda", args.local_rank)
            else:
                device = torch.device("cuda")
            return model.to(device)
        """,
        "ddp-no-set-device",
        0,
    ),
    (
        """
        def main(args):
            if args.local_rank == -1 or args.no_cuda:
                device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            else:
                device = torch.device("cuda", args.local_rank)
                dist.init_process_group("nccl")
        """,
        "ddp-no-set-device",
        0,
    ),
    (
        """
        def main(args, model):
            dist.init_process_group("nccl")
            if args.cuda:
                model.cuda()
        """,
        "ddp-no-set-device",
        1,
    ),
    ('dist.init_process_group("gloo")\nmodel = nn.Linear(2, 2).cuda()', "ddp-no-set-device", 0),
    (
        """
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]
        dist.init_process_group("nccl")
        model = nn.Linear(2, 2).cuda()
        """,
        "ddp-no-set-device",
        0,
    ),
    (
        """
        def main(args, model):
            if args.gpu is not None:
                torch.cuda.set_device(args.gpu)
                model = DDP(model.cuda(args.gpu), device_ids=[args.gpu])
            else:
                model = DDP(model.cuda())
        """,
        "ddp-device-ids",
        0,
    ),
    (
        """
        def main(rank, model):
            dist.init_process_group("nccl")
            if rank == 0:
                probe = torch.ones(1).cuda(0)
            return DDP(model.cuda(rank), device_ids=[rank])
        """,
        "ddp-same-gpu",
        0,
    ),
    ('def f(model):\n    model = DDP(model)\n    return model.to("cpu")', "ddp-before-move", 0),
    ("def f(model, d):\n    model.to(d)\n    model = DDP(model)\n    model.to(d)", "ddp-before-move", 0),
    ("def f(model, d):\n    model = DDP(model)\n    model.to(d)", "ddp-before-move", 1),
    # collectives
    ("def f(rank):\n    if rank == 0:\n        dist.send(torch.ones(1), 1)", "collective-in-rank-branch", 0),
    ("def f(rank, g):\n    if rank == 0:\n        dist.barrier(group=g)", "collective-in-rank-branch", 0),
    ("def f(rank, g):\n    if rank == 0:\n        dist.barrier(g)", "collective-in-rank-branch", 0),
    ("def f(rank):\n    if rank < 4:\n        dist.barrier()", "collective-in-rank-branch", 0),
    ("if dist.get_rank() == 0:\n    dist.barrier()", "collective-in-rank-branch", 1),
    ("def f(args):\n    if args.local_rank in [-1, 0]:\n        dist.barrier()", "collective-in-rank-branch", 1),
    ("def f(self):\n    if not is_main_process():\n        return\n    dist.barrier()", "collective-in-rank-branch", 1),
    (
        """
        def f(rank, x):
            if rank == 0:
                dist.broadcast(x, 0)
            else:
                x = torch.empty(3)
                dist.broadcast(x, 0)
        """,
        "collective-in-rank-branch",
        0,
    ),
    (
        """
        def f(rank, model, x):
            model = DDP(model)
            if rank == 0:
                return model.module(x)
        """,
        "ddp-forward-in-rank-branch",
        0,
    ),
    (
        """
        def f(rank, model, x):
            ddp = DDP(model)
            if rank == 0:
                return model(x)
        """,
        "ddp-forward-in-rank-branch",
        0,
    ),
    (
        """
        def f(rank, model, x):
            model = DDP(model)
            model = model.module
            if rank == 0:
                return model(x)
        """,
        "ddp-forward-in-rank-branch",
        0,
    ),
    (
        """
        def f(model, loader, args):
            model = DDP(model)
            for step, x in enumerate(loader):
                loss = model(x).mean()
                loss.backward()
                if args.dry_run:
                    break
        """,
        "rank-divergent-break",
        0,
    ),
    # what every rank does
    (
        """
        def save(model):
            torch.save(model.state_dict(), "a.pt")

        def main(rank, model):
            dist.init_process_group("nccl")
            if rank == 0:
                save(model)
        """,
        "save-all-ranks",
        0,
    ),
    (
        """
        def save(model):
            torch.save(model.state_dict(), "a.pt")

        def main(rank, model):
            dist.init_process_group("nccl")
            save(model)
        """,
        "save-all-ranks",
        1,
    ),
    (
        """
        def main(rank, model):
            dist.init_process_group("nccl")
            if rank != 0:
                return
            torch.save(model.state_dict(), "a.pt")
        """,
        "save-all-ranks",
        0,
    ),
    (
        """
        def main(rank, model):
            dist.init_process_group("nccl")
            path = f"a-{dist.get_rank()}.pt"
            torch.save(model.state_dict(), path)
        """,
        "save-all-ranks",
        0,
    ),
    ("def main(model):\n    torch.save(model.state_dict(), 'a.pt')", "save-all-ranks", 0),
    (
        """
        import tempfile

        def main(model):
            dist.init_process_group("nccl")
            with tempfile.TemporaryFile() as file:
                torch.save(model.state_dict(), file)
        """,
        "save-all-ranks",
        0,
    ),
    (
        """
        import io

        def main(model):
            dist.init_process_group("nccl")
            buffer = io.BytesIO()
            torch.save(model.state_dict(), buffer)
        """,
        "save-all-ranks",
        0,
    ),
    (
        """
        def main(rank, loader):
            dist.init_process_group("nccl")
            for x in loader:
                if rank == 0 and x.sum() > 0:
                    print(x)
        """,
        "print-all-ranks",
        0,
    ),
    (
        """
        def main(rank, seed):
            dist.init_process_group("nccl")
            seed = seed + rank
            torch.manual_seed(seed)
        """,
        "rank-identical-seed",
        0,
    ),
    (
        """
        def main(seed):
            dist.init_process_group("nccl")
            offset = int(os.environ["RANK"])
            torch.manual_seed(1337 + offset)
        """,
        "rank-identical-seed",
        0,
    ),
    # the wrapper
    ("def f(model):\n    model = DDP(model)\n    return model.state_dict()", "ddp-attr-access", 0),
    ("def f(model):\n    model = DDP(model)\n    model.epoch = 3\n    return model.epoch", "ddp-attr-access", 0),
    ("def f(model):\n    model = DDP(model)\n    model = model.module\n    return model.head", "ddp-attr-access", 0),
    ("def f(model, many):\n    if many:\n        model = DDP(model)\n    return model.head", "ddp-attr-access", 0),
    (
        "def f(model):\n    model = DDP(model)\n    return model.head if hasattr(model, 'head') else None",
        "ddp-attr-access",
        0,
    ),
    (
        """
        class Trainer:
            def __init__(self, model, many):
                self.model = model
                if many:
                    self.model = DDP(self.model)

            def run(self, x):
                return self.model.encode(x)
        """,
        "ddp-attr-access",
        0,
    ),
    (
        """
        class Trainer:
            def __init__(self, model):
                self.model = DDP(model)

            def unwrap(self):
                self.model = self.model.module

            def run(self, x):
                return self.model.encode(x)
        """,
        "ddp-attr-access",
        0,
    ),
    (
        """
        class Trainer:
            def __init__(self, model, rank):
                self.rank = rank
                self.model = DDP(model)

            def run(self, x):
                if self.rank == 0:
                    return self.model(x)
        """,
        "ddp-forward-in-rank-branch",
        1,
    ),
    (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(2, 2)

            def forward(self, x):
                for layer in self.children():
                    x = layer(x)
                return x

        model = DDP(Net())
        """,
        "ddp-unused-submodule",
        0,
    ),
    (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(2, 2)

        model = DDP(Net(), find_unused_parameters=True)
        """,
        "ddp-unused-submodule",
        0,
    ),
    # the start
    (
        """
        if "MASTER_ADDR" not in os.environ:
            os.environ["MASTER_ADDR"] = "localhost"
        """,
        "hard-coded-rendezvous",
        0,
    ),
    ("import sys\nos.environ['MASTER_ADDR'] = sys.argv[1]", "hard-coded-rendezvous", 0),
    ("def f(w):\n    mp.spawn(w, nprocs=torch.cuda.device_count())", "hard-coded-world-size", 0),
    ("def f(w):\n    mp.spawn(w, nprocs=1)  # cuda", "hard-coded-world-size", 0),
    (
        """
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
        """,
        "launch-local-rank-arg",
        0,
    ),
    ("def f():\n    dist.init_process_group('nccl')\n    dist.destroy_process_group()", "no-destroy-process-group", 0),
    ("def f():\n    dist.init_process_group('nccl')", "no-destroy-process-group", 0),
]


@pytest.mark.parametrize(("text", "name", "count"), CASES)
def test_looks_alike(text, name, count):
    loaded = [each for each in OURS if each.rule.name == name]
    assert len(loaded) == 1
    source = Source("train.py", IMPORTS + textwrap.dedent(text) + "\n")
    assert len(check_source(source, (2, 1), loaded)) == count
