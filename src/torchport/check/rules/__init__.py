"""The rules: one module each, with ``META``, ``look`` and a docstring that is documentation and test alike.

In the order in which users see them; a test fails for a module that is not listed.
"""

from __future__ import annotations

import importlib
from functools import cache

from torchport.check.rule import LoadedRule

GROUPS: dict[str, tuple[str, ...]] = {
    "device": (
        "discarded_to",
        "factory_without_device",
        "mask_created_on_cpu",
        "hidden_state_on_cpu",
        "untransferred_batch",
        "untransferred_label",
        "loss_weight_device",
        "tensor_attr_not_buffer",
        "model_not_moved",
        "index_device_mismatch",
        "lengths_must_be_cpu",
        "generator_device_mismatch",
        "legacy_tensor_constructor",
        "cuda_tensor_type_alias",
        "hard_coded_cuda",
        "hard_coded_device_index",
        "device_from_truthy_gpu_id",
        "stale_buffer_reference",
        "module_in_plain_container",
        "parameter_then_cuda",
        "module_built_in_forward",
        "module_replaced_after_move",
        "global_default_cuda",
        "device_from_availability_not_model",
        "parameters_in_forward_under_dp",
        "get_device_index",
        "scalar_compare_device",
    ),
    "transfer": (
        "numpy_on_cuda",
        "numpy_func_on_tensor",
        "numpy_in_forward",
        "item_every_step",
        "sync_in_inner_loop",
        "transfer_without_non_blocking",
        "non_blocking_to_cpu",
        "repeated_constant_transfer",
        "create_then_move",
        "torch_tensor_of_tensor",
        "empty_cache_in_loop",
        "timing_without_synchronize",
        "tensor_bool_control_flow",
        "python_loop_over_tensor",
    ),
    "distributed": (
        "dataparallel",
        "ddp_missing_sampler",
        "sampler_no_set_epoch",
        "sampler_and_shuffle",
        "init_backend_missing",
        "ddp_no_set_device",
        "ddp_device_ids",
        "collective_in_rank_branch",
        "launch_local_rank_arg",
    ),
    "precision": (
        "amp_deprecated_cuda_namespace",
        "clip_without_unscale",
        "half_overflow_constant",
    ),
    "data": (
        "num_workers_zero",
        "pin_memory_missing",
        "pin_cuda_tensors",
        "workers_start_anew",
        "cuda_in_dataset",
        "numpy_rng_in_dataset",
        "no_main_guard",
        "local_function_for_workers",
        "keep_worker_tensors",
        "iter_next_method",
        "worker_option_without_workers",
        "batch_sampler_conflict",
    ),
    "memory": ("accumulate_graph", "eval_without_no_grad"),
    "reproducibility": (),
    "logging": (),
    "checkpoint": (
        "load_without_map_location",
        "map_location_lambda",
        "load_onto_one_gpu",
        "save_whole_module",
        "save_wrapped_state_dict",
        "save_compiled_state_dict",
        "optimizer_state_before_move",
        "load_strict_false",
        "save_over_the_last",
        "checkpoint_misses_state",
        "load_needs_pickle",
    ),
    "security": (),
    "configuration": (),
    "api": (
        "api_removed",
        "api_deprecated",
        "api_renamed",
        "variable_wrapper",
        "variable_volatile",
        "zero_dim_index",
        "verbose_lr",
        "byte_mask",
        "implicit_softmax_dim",
        "size_average",
        "no_underscore_init",
        "checkpoint_use_reentrant",
        "stft_return_complex",
        "torchvision_pretrained",
        "bool_minus",
        "numpy_scalar_alias",
        "meshgrid_indexing",
        "scalar_first_overload",
        "legacy_autograd_function",
    ),
}


@cache
def rules() -> tuple[LoadedRule, ...]:
    """All rules, loaded when a check begins."""
    found = []
    for group, names in GROUPS.items():
        for name in names:
            module = importlib.import_module(f"torchport.check.rules.{group}.{name}")
            files = frozenset(getattr(module, "FILES", ("python",)))
            found.append(LoadedRule(module.META, module.look, module.__doc__ or "", files))
    return tuple(found)
