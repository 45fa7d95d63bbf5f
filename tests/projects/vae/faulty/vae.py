import torch
import torch.nn.functional as F
from torch import nn

LATENT, PIXELS, EPOCHS = 4, 36, 2

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(PIXELS, 24)
        self.fc_mu = nn.Linear(24, LATENT)
        self.fc_logvar = nn.Linear(24, LATENT)
        self.fc3 = nn.Linear(LATENT, 24)
        self.fc4 = nn.Linear(24, PIXELS)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc_mu(h), self.fc_logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn(std.shape)  # BORN 1
        return mu + eps * std  # MEET 1 R101 eps

    def decode(self, z):
        h = F.relu(self.fc3(z))  # MEET 3 R101 z
        return torch.sigmoid(self.fc4(h))  # BORN 4

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    per_dim = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=0)
    weights = torch.linspace(0.5, 1.0, LATENT)  # BORN 2
    return bce + (weights * per_dim).sum()  # MEET 2 R101 weights


def make_images(count):
    """Bars on a 6 x 6 grid."""
    g = torch.Generator().manual_seed(3)
    images = torch.zeros(count, 6, 6)
    rows = torch.randint(6, (count,), generator=g)
    images[torch.arange(count), rows] = 1.0
    return images.view(count, PIXELS)


def run():
    torch.manual_seed(1)
    images = make_images(32)
    model = VAE().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        train_loss = 0
        for batch in images.split(16):
            batch = batch.to(DEVICE)
            optimizer.zero_grad()
            recon, mu, logvar = model(batch)
            loss = loss_function(recon, batch, mu, logvar)
            loss.backward()
            train_loss += loss.item()
            optimizer.step()
        print(f"epoch {epoch}: average loss {train_loss / len(images):.4f}")

    model.eval()
    with torch.no_grad():
        z = torch.randn(3, LATENT)  # BORN 3
        samples = model.decode(z)
        pictures = samples.numpy().reshape(3, 6, 6)  # MEET 4 R102 samples
    print("ink per sample", pictures.mean(axis=(1, 2)).round(2))


run()
