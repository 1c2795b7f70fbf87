"""More small PyTorch networks for zoo.py, after published designs for tables, series, graphs and
images. MODULES is as in zoo_modules.py.
"""

MODULES = {}


def design(inputs, names=("x",), task="numbers"):
    """Registers build(m, torch, nn): it gives the module m its layers and returns its forward."""

    def add(build):
        def make():
            import torch

            class Design(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.forward = build(self, torch, torch.nn)

            return Design()

        MODULES[build.__name__] = (make, inputs, names, task)
        return build

    return add


@design([("float", (8,))])
def oblivious_trees(m, torch, nn):
    """NODE: soft splits at four levels of six trees."""
    m.choice, m.limit = nn.Parameter(torch.randn(8, 6, 4)), nn.Parameter(torch.randn(6, 4))
    m.leaves = nn.Parameter(torch.randn(6, 16))
    bits = torch.tensor([[(leaf >> level) & 1 for level in range(4)] for leaf in range(16)])
    m.register_buffer("bits", bits.bool())

    def forward(x):
        value = torch.einsum("bi,ijk->bjk", x, torch.softmax(m.choice, 0))
        right = torch.clamp(0.5 + 0.5 * (value - m.limit), 0, 1).unsqueeze(2)
        share = torch.where(m.bits, right, 1 - right).prod(-1)
        return (share * m.leaves).sum(-1).mean(1, keepdim=True)

    return forward


@design([("float", (8,))])
def sparsemax(m, torch, nn):
    """Shares that add up to 1 and are often 0, by sorting."""
    m.first, m.last = nn.Linear(8, 12), nn.Linear(12, 1)

    def forward(x):
        z = m.first(x)
        ordered = torch.sort(z, dim=-1, descending=True)[0]
        total = torch.cumsum(ordered, -1) - 1
        count = (torch.arange(1, 13, dtype=z.dtype) * ordered > total).sum(-1, keepdim=True)
        limit = total.gather(-1, count - 1) / count.to(z.dtype)
        return m.last(torch.clamp(z - limit, min=0))

    return forward


@design([(20, (5,)), ("float", (4,))], ("kinds", "numbers"))
def attention_over_columns(m, torch, nn):
    """SAINT and TabTransformer: embedded categories and numbers attend to each other."""
    m.kinds = nn.Embedding(20, 16)
    m.numbers = nn.ModuleList([nn.Linear(1, 16) for _ in range(4)])
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    m.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    m.head = nn.Sequential(nn.Linear(144, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(kinds, numbers):
        columns = [one(numbers[:, i:i + 1]) for i, one in enumerate(m.numbers)]
        tokens = torch.cat([m.kinds(kinds), torch.stack(columns, 1)], 1)
        return m.head(m.blocks(tokens).flatten(1))

    return forward


@design([("float", (10,))])
def cross_network(m, torch, nn):
    """DCN v2: products of the input with what was made of it."""
    m.cross = nn.ModuleList([nn.Linear(10, 10) for _ in range(3)])
    m.deep, m.head = nn.Sequential(nn.Linear(10, 16), nn.ReLU()), nn.Linear(26, 1)

    def forward(x):
        z = x
        for layer in m.cross:
            z = x * layer(z) + z
        return m.head(torch.cat([z, m.deep(x)], 1))

    return forward


@design([(30, (6,))], ("fields",))
def auto_int(m, torch, nn):
    """Embedded fields that attend to each other, with skips."""
    m.fields = nn.Embedding(30, 8)
    m.attend = nn.ModuleList([nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2)])
    m.skip = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
    m.head = nn.Linear(48, 1)

    def forward(fields):
        z = m.fields(fields)
        for attend, skip in zip(m.attend, m.skip):
            z = torch.relu(attend(z, z, z, need_weights=False)[0] + skip(z))
        return torch.sigmoid(m.head(z.flatten(1)))

    return forward


@design([("float", (1, 64))])
def wave_net(m, torch, nn):
    """Gated dilated convolutions whose skips are added up."""
    m.first, m.last = nn.Conv1d(1, 8, 1), nn.Conv1d(8, 1, 1)
    m.gates = nn.ModuleList([nn.Conv1d(8, 16, 2, dilation=d, padding=d) for d in (1, 2, 4, 8)])
    m.outs = nn.ModuleList([nn.Conv1d(8, 16, 1) for _ in range(4)])

    def forward(x):
        h, total = m.first(x), 0
        for gate, out in zip(m.gates, m.outs):
            a, b = gate(h)[..., :64].chunk(2, 1)
            more, skip = out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            h, total = h + more, total + skip
        return m.last(torch.relu(total))[:, 0, -4:]

    return forward


@design([("float", (8,))])
def ordered_quantiles(m, torch, nn):
    """Three quantiles that cannot cross."""
    m.body = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 3))

    def forward(x):
        q = m.body(x)
        return torch.cumsum(torch.cat([q[:, :1], nn.functional.softplus(q[:, 1:])], 1), 1)

    return forward


@design([("float", (1, 16, 16))])
def u_net(m, torch, nn):
    """Down and up again, with what was seen on the way down."""
    m.down, m.middle = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
    m.up, m.last = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 1, 3, padding=1)

    def forward(x):
        a = torch.relu(m.down(x))
        b = torch.relu(m.middle(nn.functional.max_pool2d(a, 2)))
        return m.last(torch.cat([a, m.up(b)], 1)).mean((2, 3))

    return forward


@design([("float", (3, 16, 16))])
def cubic_resize(m, torch, nn):
    """Images enlarged by cubic interpolation."""
    m.layer, m.head = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 1)

    def forward(x):
        x = nn.functional.interpolate(x, size=(24, 24), mode="bicubic", align_corners=False)
        return m.head(torch.relu(m.layer(x)).mean((2, 3)))

    return forward


@design([("float", (12, 3))])
def point_net(m, torch, nn):
    """Points turned by a learned matrix, each by itself, then the largest of all."""
    m.turn, m.each = nn.Linear(3, 9), nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16),
                                                    nn.ReLU(), nn.Conv1d(16, 32, 1))
    m.head = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(x):
        x = torch.bmm(x, m.turn(x.mean(1)).view(-1, 3, 3) + torch.eye(3))
        return m.head(m.each(x.transpose(1, 2)).max(2)[0])

    return forward


@design([("float", (6, 5)), ("float", (6, 6))], ("nodes", "edges"))
def graph_attention(m, torch, nn):
    """GAT over a graph that comes with the row."""
    m.inside, m.left, m.right = nn.Linear(5, 16, bias=False), nn.Linear(16, 1), nn.Linear(16, 1)
    m.head = nn.Linear(16, 1)

    def forward(nodes, edges):
        h = m.inside(nodes)
        score = nn.functional.leaky_relu(m.left(h) + m.right(h).transpose(1, 2), 0.2)
        score = torch.where(edges > 0, score, torch.full_like(score, -1e9))
        return m.head(nn.functional.elu(torch.softmax(score, -1) @ h).mean(1))

    return forward


@design([("float", (8,))])
def hyper_network(m, torch, nn):
    """A network that makes the weights of another."""
    m.weights, m.head = nn.Linear(4, 64), nn.Linear(16, 1)

    def forward(x):
        made = m.weights(x[:, :4]).view(-1, 16, 4)
        return m.head(torch.relu(torch.bmm(made, x[:, 4:].unsqueeze(-1)).squeeze(-1)))

    return forward


@design([("float", (8,))])
def pooled_by_attention(m, torch, nn):
    """Columns mixed by shares, with einsum."""
    m.each, m.query, m.head = nn.Linear(1, 16), nn.Parameter(torch.randn(16)), nn.Linear(16, 1)

    def forward(x):
        z = torch.tanh(m.each(x.unsqueeze(-1)))
        return m.head(torch.einsum("bn,bnd->bd", torch.softmax(z @ m.query, -1), z))

    return forward


@design([("float", (8,))])
def radial_basis(m, torch, nn):
    """Bumps along each column, as Kolmogorov–Arnold networks have them."""
    m.register_buffer("places", torch.linspace(-2, 2, 6))
    m.weight, m.head = nn.Parameter(0.2 * torch.randn(8, 6, 16)), nn.Linear(16, 1)

    def forward(x):
        bumps = torch.exp(-((x.unsqueeze(-1) - m.places) / 0.8) ** 2)
        return m.head(torch.einsum("big,igo->bo", bumps, m.weight))

    return forward


@design([("float", (10,))])
def differential_equation(m, torch, nn):
    """Four steps by the midpoint rule."""
    m.slope = nn.Sequential(nn.Linear(11, 16), nn.Tanh(), nn.Linear(16, 10))
    m.head = nn.Linear(10, 1)

    def forward(x):
        for step in range(4):
            t = torch.full_like(x[:, :1], step / 4)
            half = m.slope(torch.cat([x, t], 1)) / 8
            x = x + m.slope(torch.cat([x + half, t + 0.125], 1)) / 4
        return m.head(x)

    return forward


@design([("float", (8,))], task="labels")
def cosine_classifier(m, torch, nn):
    """Angles to a direction for each class."""
    m.body, m.classes = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Parameter(torch.randn(5, 16))

    def forward(x):
        normalize = nn.functional.normalize
        return 10 * nn.functional.linear(normalize(m.body(x) + 0.1), normalize(m.classes))

    return forward


@design([(30, (9,))], ("words",), task="labels")
def text_convolutions(m, torch, nn):
    """The largest of several convolutions over words."""
    m.words = nn.Embedding(30, 8)
    m.layers = nn.ModuleList([nn.Conv1d(8, 6, width) for width in (2, 3, 4)])
    m.head = nn.Linear(18, 3)

    def forward(words):
        z = m.words(words).transpose(1, 2)
        return m.head(torch.cat([torch.relu(layer(z)).amax(2) for layer in m.layers], 1))

    return forward


@design([("float", (3, 16, 16))], task="labels")
def small_images(m, torch, nn):
    """A plain convolutional network with a skip."""
    m.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
    m.second = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8))
    m.head = nn.Linear(8, 4)

    def forward(x):
        h = m.first(x)
        h = nn.functional.max_pool2d(torch.relu(h + m.second(h)), 2)
        return m.head(nn.functional.adaptive_avg_pool2d(h, 1).flatten(1))

    return forward
