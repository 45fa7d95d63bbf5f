import torch
import torch.nn.functional as F
from graph import two_communities
from model import GNN


def reach(edge_index, n, device):
    """Share of the graph that each node reaches in two hops."""
    adjacency = torch.zeros(n, n, dtype=torch.long, device=device)  # BORN 4
    adjacency[edge_index[0], edge_index[1]] = 1
    two_hop = adjacency @ adjacency  # MEET 4 R109 adjacency
    return (two_hop > 0).float().mean(dim=1, keepdim=True)


def main():
    torch.manual_seed(12)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    graph = two_communities()
    n = len(graph.y)
    x = graph.x.to(device)
    y, edge_index, train_mask = graph.y, graph.edge_index, graph.train_mask
    norm = graph.norm.to(device)

    x = torch.cat([x, reach(edge_index, n, device)], dim=1)
    model = GNN(x.size(1), 8, 2).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(5):
        model.train()
        optimizer.zero_grad()
        out = model(x, edge_index, norm)
        loss = F.cross_entropy(out[train_mask], y[train_mask])  # MEET 3 R101
        loss.backward()
        optimizer.step()

        model.eval()
        with torch.no_grad():
            predicted = model(x, edge_index, norm).argmax(dim=-1)
            accuracy = (predicted == y)[~train_mask].float().mean()  # MEET 3 R101 y
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
