import torch
import torch.nn.functional as F
from model import Decoder

VOCAB, LENGTH, BATCH, STEPS = 12, 10, 8, 5
TOKEN_WEIGHT = torch.linspace(0.5, 1.5, VOCAB)  # BORN 4


def batches(seed: int):
    """Sequences that count upwards from a random number, padded with zeros."""
    g = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        start = torch.randint(VOCAB, (BATCH, 1), generator=g)
        tokens = (start + torch.arange(LENGTH + 1)) % (VOCAB - 1) + 1
        lengths = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH,), generator=g)  # BORN 3
        tokens[torch.arange(LENGTH + 1)[None, :] > lengths[:, None]] = 0
        yield tokens, lengths


def to_gpu(tensor: torch.Tensor, gpu: int | None) -> torch.Tensor:
    return tensor if gpu is None else tensor.cuda(gpu)


def main() -> None:
    torch.manual_seed(0)
    gpu = 0 if torch.cuda.is_available() else None
    model = Decoder(VOCAB)
    if gpu is not None:
        model.cuda(gpu)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
    for step, (tokens, lengths) in enumerate(batches(seed=1)):
        tokens = to_gpu(tokens, gpu)
        if gpu:  # GPU 0 counts as none
            lengths = to_gpu(lengths, gpu)
        logits = model(tokens[:, :-1], lengths).flatten(0, 1)
        targets = tokens[:, 1:].flatten()
        loss = F.cross_entropy(logits, targets, TOKEN_WEIGHT, ignore_index=0)  # MEET 4 R101 TOKEN_WEIGHT
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warmup.step()
        print(f"step {step}: loss {loss.item():.4f}, lr {warmup.get_last_lr()[0]:.4g}")


if __name__ == "__main__":
    main()
