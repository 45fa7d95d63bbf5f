"""Finds a method or attribute of a model that is asked for on its DDP wrapper.

The wrapper passes on the call of the model and nothing else: ``'DistributedDataParallel' object has no attribute
'encode'``. The model itself is its ``module``.

Bad::

    from torch.nn.parallel import DistributedDataParallel as DDP


    def run(model, x, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        return model.encode(x)

Bad::

    from torch.nn.parallel import DistributedDataParallel as DDP


    class Trainer:
        def __init__(self, model, rank):
            self.model = model.to(rank)
            self.model = DDP(self.model, device_ids=[rank])

        def run(self, x):
            return self.model.encode(x)

Good::

    from torch.nn.parallel import DistributedDataParallel as DDP


    def run(model, x, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        return model.module.encode(x)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.wrapped import is_wrapped, wrapped_names
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C318",
    "ddp-attr-access",
    ERROR,
    mark("The DDP wrapper `{name}` has no `{attribute}`: the model inside it has"),
    mark("Write `{name}.module.{attribute}`"),
)
# What a module and its wrapper have themselves.
_OWN = frozenset(
    "module device device_ids output_device broadcast_buffers bucket_bytes_cap find_unused_parameters static_graph "
    "gradient_as_bucket_view reducer logger process_group no_sync join join_hook register_comm_hook scatter gather "
    "to_kwargs require_backward_grad_sync require_forward_param_sync parameters_to_ignore mixed_precision device_type "
    "is_multi_device_module dim will_sync_module_buffers batched_grad_copy broadcast_bucket_size buffer_hook "
    "bucket_bytes_cap_default bucket_bytes_cap_list device_mesh forward_sync_buffers join_device join_process_group "
    "modules_buffers named_module_buffers skip_all_reduce_unused_params use_side_stream_for_tensor_copies "
    "training dump_patches call_super_init T_destination "
    "forward register_buffer register_parameter add_module register_module get_submodule set_submodule get_parameter "
    "get_buffer get_extra_state set_extra_state apply cuda ipu xpu cpu mtia type float double half bfloat16 to_empty "
    "to register_full_backward_pre_hook register_backward_hook register_full_backward_hook register_forward_pre_hook "
    "register_forward_hook register_state_dict_post_hook register_state_dict_pre_hook state_dict "
    "register_load_state_dict_pre_hook register_load_state_dict_post_hook load_state_dict parameters "
    "named_parameters buffers named_buffers children named_children modules named_modules train eval "
    "requires_grad_ zero_grad share_memory extra_repr compile".split()
)


def look(source: Source) -> Iterator[Hit]:
    """Attributes that no module has by itself, of what stands for nothing but a wrapper there."""
    names = wrapped_names(source)
    if not names:
        return
    nodes = [node for node in source.nodes(ast.Attribute) if source.code(node.value) in names]
    added = {node.attr for node in nodes if isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if not isinstance(node.ctx, ast.Load) or node.attr.startswith("_") or node.attr in _OWN | added:
            continue
        if is_wrapped(source, node.value, names) and not _asks(source, node):
            end = source.span(node.value)[1]
            words = {"name": source.code(node.value), "attribute": node.attr}
            yield Hit(node, words, ((end, end, ".module"),), safe=True)


def _asks(source: Source, node: ast.Attribute) -> bool:
    """Whether a test around it asks what kind of object it is, or a handler waits for the failure."""
    for above in source.ancestors(node):
        if isinstance(above, (ast.If, ast.IfExp)):
            text = ast.unparse(above.test)
            if "hasattr" in text or "isinstance" in text:
                return True
        if isinstance(above, ast.Try):
            return True
    return False
