"""Small PyTorch networks such as people write for their own data, for zoo.py.

MODULES maps a name to (function that makes the module, inputs, names of inputs, task); an input is
("float", shape of a row), or (largest + 1, shape) for whole numbers.
"""

MODULES = {}


def module(inputs, names=("x",), task="numbers"):
    def add(make):
        MODULES[make.__name__] = (make, inputs, names, task)
        return make

    return add


@module([("float", (24,))])
def n_beats():
    """Forecasts six steps: blocks that take off what they explain and add up what they foresee."""
    import torch
    from torch import nn

    class Forecast(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Sequential(
                nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 30))
                for _ in range(3)])

        def forward(self, x):
            total = torch.zeros_like(x[:, :6])
            for block in self.blocks:
                both = block(x)
                x, total = x - both[:, :24], total + both[:, 24:]
            return total

    return Forecast()


@module([(20, (5,)), ("float", (4,))], ("kinds", "numbers"))
def deep_fm():
    """A factorisation machine over embedded categories beside a perceptron."""
    import torch
    from torch import nn

    class DeepFm(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Embedding(20, 1)
            self.vectors = nn.Embedding(20, 6)
            self.deep = nn.Sequential(nn.Linear(34, 32), nn.ReLU(), nn.Linear(32, 1))
            self.linear = nn.Linear(4, 1)

        def forward(self, kinds, numbers):
            v = self.vectors(kinds)
            pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1, keepdim=True)
            deep = self.deep(torch.cat([v.flatten(1), numbers], 1))
            return self.linear(numbers) + self.bias(kinds).sum(1) + pairs + deep

    return DeepFm()


@module([("float", (3, 32))])
def temporal_convolutions():
    """Causal, dilated convolutions with weight normalisation and skips."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self, channels, width, dilation):
            super().__init__()
            self.pad = 2 * dilation
            self.layer = torch.nn.utils.parametrizations.weight_norm(
                nn.Conv1d(channels, width, 3, dilation=dilation))
            self.skip = nn.Conv1d(channels, width, 1)

        def forward(self, x):
            return torch.relu(self.layer(functional.pad(x, (self.pad, 0)))) + self.skip(x)

    class Causal(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(Block(3, 8, 1), Block(8, 8, 2), Block(8, 8, 4))
            self.head = nn.Linear(8, 1)

        def forward(self, x):
            return self.head(self.blocks(x)[:, :, -1])

    return Causal()


@module([("float", (6, 4))])
def message_passing():
    """Three rounds over a fixed graph of six nodes, summed at their targets by scatter."""
    import torch
    from torch import nn

    class Messages(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("start", torch.tensor([0, 1, 2, 3, 4, 5, 0, 2]))
            self.register_buffer("end", torch.tensor([1, 2, 3, 4, 5, 0, 3, 5]))
            self.inside = nn.Linear(4, 16)
            self.message = nn.Linear(32, 16)
            self.update = nn.GRUCell(16, 16)
            self.head = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

        def forward(self, x):
            h = torch.relu(self.inside(x))
            for _ in range(3):
                pairs = torch.cat([h[:, self.start], h[:, self.end]], 2)
                sent = torch.relu(self.message(pairs))
                where = self.end.view(1, -1, 1).expand(x.shape[0], -1, 16)
                got = torch.zeros_like(h).scatter_add(1, where, sent)
                h = self.update(got.reshape(-1, 16), h.reshape(-1, 16)).reshape(-1, 6, 16)
            return self.head(h.mean(1))

    return Messages()


@module([("float", (3,))])
def siren():
    """Sines of Fourier features, as networks that stand for a field have them."""
    import torch
    from torch import nn

    class Sines(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("frequencies", torch.randn(3, 8))
            self.layers = nn.ModuleList([nn.Linear(16, 32), nn.Linear(32, 32)])
            self.last = nn.Linear(32, 2)

        def forward(self, x):
            angle = x @ self.frequencies
            x = torch.cat([angle.sin(), angle.cos()], 1)
            for layer in self.layers:
                x = torch.sin(3 * layer(x))
            return self.last(x)

    return Sines()


@module([("float", (7,))])
def mixture_density():
    """The mean of a mixture of three normals whose weights, means and scales are learned."""
    import torch
    from torch import nn

    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(7, 32), nn.ELU(), nn.LayerNorm(32))
            self.parts = nn.Linear(32, 9)

        def forward(self, x):
            share, mean, scale = self.parts(self.body(x)).chunk(3, -1)
            share = torch.softmax(share, -1)
            return torch.stack([(share * mean).sum(-1),
                                (share * torch.exp(scale.clamp(-5, 2))).sum(-1)], -1)

    return Mixture()


@module([(30, (7,))], ("words",))
def attentive_sequence():
    """A GRU that reads words and one that answers four numbers, looking back by attention."""
    import torch
    from torch import nn

    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(30, 8)
            self.reader = nn.GRU(8, 12, batch_first=True)
            self.cell = nn.GRUCell(13, 12)
            self.head = nn.Linear(24, 1)

        def forward(self, words):
            seen, last = self.reader(self.words(words))
            h, y, answers = last[0], torch.zeros_like(seen[:, 0, :1]), []
            for _ in range(4):
                share = torch.softmax(torch.einsum("ntd,nd->nt", seen, h), -1)
                looked = torch.bmm(share.unsqueeze(1), seen).squeeze(1)
                h = self.cell(torch.cat([looked, y], 1), h)
                y = self.head(torch.cat([h, looked], 1))
                answers.append(y)
            return torch.cat(answers, 1)

    return Sequence()


@module([("float", (10,))])
def autoencoder():
    """Answers from the code and from how badly the code rebuilds the input."""
    import torch
    from torch import nn

    class Coded(nn.Module):
        def __init__(self):
            super().__init__()
            self.code = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 3))
            self.back = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 10))
            self.head = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

        def forward(self, x):
            code = self.code(x)
            error = (self.back(code) - x).square().mean(1, keepdim=True).sqrt()
            return self.head(torch.cat([code, torch.log(1 + error)], 1))

    return Coded()


@module([("float", (9,))])
def several_heads():
    """Four targets, each by a head of its own, behind experts that a gate mixes."""
    import torch
    from torch import nn

    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList([nn.Linear(9, 16) for _ in range(3)])
            self.gate = nn.Linear(9, 3)
            self.heads = nn.ModuleList([nn.Sequential(nn.Linear(16, 8), nn.PReLU(),
                                                      nn.Linear(8, 1)) for _ in range(4)])

        def forward(self, x):
            mixed = torch.stack([torch.nn.functional.silu(e(x)) for e in self.experts], 2)
            h = (mixed * self.gate(x).softmax(1).unsqueeze(1)).sum(2)
            return torch.cat([head(h) for head in self.heads], 1)

    return Heads()


@module([("float", (2, 40))], task="labels")
def conv_lstm():
    """Convolutions and a bidirectional LSTM over a signal, pooled, with five classes."""
    import torch
    from torch import nn

    class Signal(nn.Module):
        def __init__(self):
            super().__init__()
            self.front = nn.Sequential(nn.Conv1d(2, 8, 5, padding=2), nn.BatchNorm1d(8), nn.ReLU(),
                                       nn.MaxPool1d(2))
            self.cells = nn.LSTM(8, 12, bidirectional=True, batch_first=True)
            self.head = nn.Linear(48, 5)

        def forward(self, x):
            h, _ = self.cells(self.front(x).transpose(1, 2))
            return self.head(torch.cat([h.mean(1), h.amax(1)], 1))

    return Signal()
