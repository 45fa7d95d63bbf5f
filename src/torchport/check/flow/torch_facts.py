"""What torch's functions do with devices: which make tensors, which compare them, and which take both."""

from __future__ import annotations

from torchport.check.rules.kinds import FACTORIES, LEGACY

HOST_MAKERS = FACTORIES | LEGACY  # on the default device unless told otherwise

# Of a tensor: numbers and shapes, which live on the host.
NUMBERS = frozenset(
    "item tolist size dim ndimension numel stride storage_offset element_size nelement is_contiguous is_complex "
    "is_floating_point get_device data_ptr equal allclose is_leaf requires_grad dtype shape ndim layout itemsize "
    "nbytes".split()
)
# Methods with a tensor among their arguments that may be on another device.
TAKES_BOTH = frozenset(
    "copy_ to type_as expand_as view_as reshape_as new_tensor backward register_hook set_ is_set_to requires_grad_ "
    "size stride view reshape expand repeat permute transpose unsqueeze squeeze numpy item tolist".split()
)
REDUCTIONS = frozenset("sum mean max min norm prod std var median all any logsumexp argmax argmin".split())

# Operators that go number by number, which let a CPU tensor without dimensions through.
ELEMENTWISE = frozenset(
    "add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow eq ne lt le gt ge maximum "
    "minimum fmax fmin where clamp atan2 hypot logaddexp lerp addcmul bitwise_and bitwise_or bitwise_xor logical_and "
    "logical_or logical_xor masked_fill mse_loss l1_loss smooth_l1_loss huber_loss isclose sum mean copysign xlogy "
    "fill masked_scatter".split()
)

# Modules without parameters of their own, whose result is where the input is.
NO_PARAMETERS = frozenset(
    "ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softmax LogSoftmax Softplus Hardtanh Hardswish "
    "Hardsigmoid Softsign Tanhshrink Softmax2d LogSigmoid GLU Dropout Dropout1d Dropout2d Dropout3d AlphaDropout "
    "Flatten Unflatten Identity MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d "
    "AdaptiveAvgPool2d AdaptiveMaxPool2d AdaptiveMaxPool1d Upsample ZeroPad2d ReflectionPad2d ReplicationPad2d "
    "PixelShuffle Fold Unfold CosineSimilarity PairwiseDistance UpsamplingNearest2d UpsamplingBilinear2d".split()
)
RECURRENT = frozenset({"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"})
CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
# Arguments of losses that are kept as buffers: they go where the loss goes.
LOSS_WEIGHTS = frozenset({"weight", "pos_weight"})

# Functions whose tensors need not be together.
SEPARATE = frozenset(
    f"torch.{name}"
    for name in (
        "is_tensor numel manual_seed save load is_floating_point set_grad_enabled no_grad enable_grad compile "
        "broadcast_shapes result_type can_cast promote_types from_numpy as_tensor tensor set_printoptions device "
        "Generator Size get_default_dtype are_deterministic_algorithms_enabled typename inference_mode "
        "autograd.grad autograd.backward utils.checkpoint.checkpoint is_grad_enabled get_num_threads"
    ).split()
)
LENGTHS = {"torch.nn.utils.rnn.pack_padded_sequence": 1}


def is_loss(name: str) -> bool:
    """Whether a name is that of a loss module."""
    return name.startswith("torch.nn.") and name.endswith("Loss")
