import torch

use_cuda = torch.cuda.is_available()
device = torch.device("cuda" if use_cuda else "cpu")

# N is the batch size, D_in the input dimension, H the hidden dimension, D_out the output dimension.
N, D_in, H, D_out = 24, 10, 16, 3
learning_rate = 1e-3
torch.manual_seed(0)
g = torch.Generator().manual_seed(1)  # BORN 3

x = torch.randn(N, D_in)
y = torch.randn(N, D_out)
x = x.to(device)
y = y.to("cuda:1" if use_cuda else "cpu")  # MEET 2 R106
w1 = torch.randn(D_in, H, device=device, requires_grad=True)
w2 = torch.randn(H, D_out, requires_grad=True)  # BORN 1

curve = []
for t in range(5):
    # three quarters of the points at a time
    chosen = torch.randperm(N, generator=g, device=device)[: 3 * N // 4]  # MEET 3 R105
    h = x[chosen].mm(w1).clamp(min=0)
    y_pred = h.mm(w2)  # MEET 1 R101 w2
    loss = (y_pred - y[chosen]).pow(2).mean()  # BORN 4
    loss.backward()
    with torch.no_grad():
        w1 -= learning_rate * w1.grad
        w2 -= learning_rate * w2.grad
        w1.grad.zero_()
        w2.grad.zero_()
    curve.append(loss.detach().numpy())  # MEET 4 R102 loss
    print(t, loss.item())
print("fell by", curve[0] - curve[-1])
