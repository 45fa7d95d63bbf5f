"""Distributed training. Start: torchrun --nproc-per-node 2 train.py"""

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup():
    if torch.cuda.is_available():
        dist.init_process_group("nccl")
        return torch.device("cuda")
    dist.init_process_group("gloo")
    return torch.device("cpu")


def make_data():
    g = torch.Generator().manual_seed(8)
    x = torch.randn(32, 5, generator=g)
    y = (x.sum(dim=1) > 0).long()
    return TensorDataset(x, y)


def main():
    device = setup()
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
    model = DDP(model)  # MEET 1 R404
    dataset = make_data()
    sampler = DistributedSampler(dataset, shuffle=True, seed=1)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for epoch in range(2):
        sampler.set_epoch(epoch)
        totals = torch.zeros(2)  # BORN 2
        for x, y in loader:  # BORN 3
            x = x.to(device)
            out = model(x)
            loss = criterion(out, y)  # MEET 3 R101 y
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct = (out.argmax(1) == y).float().mean()  # MEET 3 R101 y
            totals += torch.tensor([loss.item(), correct.item()])
        totals /= len(loader)
        dist.all_reduce(totals)  # MEET 2 R403 totals
        if rank == 0:
            loss, accuracy = (totals / world).tolist()
            print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.2f}")
        dist.barrier()

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
