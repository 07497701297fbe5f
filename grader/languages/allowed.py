"""What a submission's Python file may use: one table, which ``policy`` reads and docs/triton.md shows.

What does not stand here may not be used. Methods of Python's own types and PyTorch's operators are not
spelled out: they are taken from the types and from PyTorch.

Layer: standard library only; PyTorch is imported when its operators are asked for.
"""

from __future__ import annotations

import builtins
import importlib
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ANY = "any public name"
OPERATORS, CLASSES, FUNCTIONS = "PyTorch's operators", "its classes", "its functions"
"""What stands for many names of a module."""


@dataclass(frozen=True)
class Group:
    """Names that may be used, and what they are."""

    title: str
    names: tuple[str, ...]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


MODULES: Mapping[str, tuple[str, ...]] = {
    "__future__": (ANY,),
    "abc": _names("ABC ABCMeta abstractmethod"),
    "collections": _names("abc ChainMap Counter OrderedDict defaultdict deque namedtuple"),
    "collections.abc": (ANY,),
    "contextlib": _names("ExitStack closing contextmanager nullcontext suppress"),
    "copy": _names("copy deepcopy replace"),
    "dataclasses": _names("KW_ONLY asdict astuple dataclass field fields is_dataclass replace"),
    "enum": _names("Enum Flag IntEnum IntFlag StrEnum auto unique"),
    "fractions": ("Fraction",),
    "functools": _names("cache cached_property cmp_to_key lru_cache partial reduce total_ordering wraps"),
    "itertools": (ANY,),
    "math": (ANY,),
    "numbers": (ANY,),
    "operator": _names(
        "abs add and_ concat contains countOf eq floordiv ge getitem gt iadd iand ifloordiv ilshift "
        "imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_not isub itemgetter "
        "itruediv ixor le lshift lt matmul mod mul ne neg not_ or_ pos pow rshift setitem sub "
        "truediv truth xor"
    ),
    "types": ("SimpleNamespace",),
    "typing": _names(
        "Annotated Any Callable ClassVar Concatenate Dict Final FrozenSet Generic Iterable Iterator "
        "List Literal Mapping MutableMapping NamedTuple NewType NoReturn Optional ParamSpec "
        "Protocol Self Sequence Set Tuple Type TypeAlias TypeGuard TypeVar TypedDict Union "
        "assert_never cast final overload override runtime_checkable TYPE_CHECKING"
    ),
    "numpy": _names(
        "abs arange array asarray bool_ ceil dtype empty empty_like exp eye finfo float16 float32 "
        "float64 floor full inf int32 int64 linspace log log2 max maximum mean min minimum nan "
        "ndarray newaxis ones pi prod sqrt stack sum tril triu where zeros zeros_like"
    ),
    "task": _names("TestSpec input_t output_t"),
    "torch": (
        OPERATORS,
        *_names(
            "Generator Size Tensor bool broadcast_shapes cdouble cfloat channels_last complex128 "
            "complex64 contiguous_format device double dtype e enable_grad finfo float "
            "get_default_dtype half iinfo inf inference_mode int is_grad_enabled is_tensor layout long "
            "manual_seed memory_format nan newaxis no_grad pi preserve_format set_grad_enabled short "
            "strided unique unravel_index vmap autocast bfloat16 float16 float32 float64 float8_e4m3fn "
            "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz int8 int16 int32 int64 uint8 uint16 uint32 "
            "uint64"
        ),
    ),
    "torch.amp": _names("autocast custom_bwd custom_fwd"),
    "torch.autograd": _names("Function Variable backward function grad"),
    "torch.autograd.function": _names("Function FunctionCtx once_differentiable"),
    "torch.cuda": _names(
        "Event Stream amp current_device current_stream device device_count get_device_capability "
        "get_device_name get_device_properties is_available stream synchronize"
    ),
    "torch.cuda.amp": _names("autocast custom_bwd custom_fwd"),
    "torch.linalg": (FUNCTIONS,),
    "torch.nn": (CLASSES, "functional", "init", "parameter"),
    "torch.nn.functional": (OPERATORS, FUNCTIONS),
    "torch.nn.init": (FUNCTIONS,),
    "torch.nn.parameter": ("Parameter",),
    "torch.special": (FUNCTIONS,),
    "triton": _names(
        "CompilationError Config OutOfResources aggregate autotune cdiv constexpr_function "
        "heuristics jit must_use_result next_power_of_2 reinterpret set_allocator"
    ),
    "triton.language": (
        OPERATORS,  # of which it has some under the same names
        *_names(
            "PropagateNan TRITON_MAX_TENSOR_NUMEL abs add aggregate_replace arange argmax argmin "
            "associative_scan assume atomic_add atomic_and atomic_cas atomic_load atomic_max atomic_min "
            "atomic_or atomic_poll atomic_store atomic_xchg atomic_xor bfloat16 bitonic_merge "
            "block_type broadcast broadcast_to cast cat cdiv ceil clamp condition const constexpr "
            "constexpr_type cos cumprod cumsum debug_barrier device_assert device_print div_rn dot "
            "dot_scaled dtype erf exp exp2 expand_dims expect_zero fdiv flip float16 float32 float64 "
            "float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 floor fma full gather histogram "
            "inline_asm_elementwise int1 int16 int32 int64 int8 interleave join load "
            "load_tensor_descriptor log log2 make_block_ptr make_tensor_descriptor map_elementwise max "
            "max_constancy max_contiguous maximum min minimum mul multiple_of num_programs "
            "pair_uniform_to_normal permute philox philox_impl pi32_t pointer_type program_id rand "
            "rand4x randint randint4x randn randn4x range ravel reduce reduce_or reshape rsqrt sigmoid "
            "sin slice sort split sqrt sqrt_rn squeeze static_assert static_print static_range "
            "store store_tensor_descriptor sub sum swizzle2d tensor tensor_descriptor "
            "tensor_descriptor_type to_tensor topk trans tuple tuple_type uint16 uint32 uint64 uint8 "
            "uint_to_uniform_float umulhi unsqueeze view void where xor_sum zeros zeros_like"
        ),
    ),
    "triton.language.extra": (),
    "triton.language.extra.cuda": (),
    "triton.language.extra.cuda.libdevice": (ANY,),
    "triton.language.extra.libdevice": (ANY,),
    "triton.language.math": _names(
        "abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi"
    ),
    "triton.runtime": (),
    "triton.runtime.driver": (),
    "triton.runtime.driver.active": _names("get_active_torch_device get_current_target"),
    "triton.tools": (),
    "triton.tools.tensor_descriptor": ("TensorDescriptor",),
}
"""What may be imported or named by a path, and what may be used of it; a part that stands here is allowed."""

OTHER_WAYS: Mapping[str, str] = {
    "torch.utils.cpp_extension": "C++ that it builds",
    "cupy.ElementwiseKernel": "the form of ElementwiseKernel",
    "cupy.ReductionKernel": "the form of ReductionKernel",
    "cupy.fuse": "the form of cupy.fuse",
    "cupy": "CuPy",
    "numba": "Numba",
    "cuda.bindings": "CUDA C++ that cuda.bindings compiles",
    "cuda": "CUDA C++ that NVRTC compiles",
    "pycuda": "PyCUDA",
    "cutlass": "CuTe",
    "tilelang": "TileLang",
    "warp": "Warp",
    "jax": "JAX",
}
"""Modules, and names in them, that other ways to write kernels begin with; what the kernels are in then."""

WAYS: Mapping[str, str] = {
    "triton": "kernels under @triton.jit",
    "load_inline": "CUDA C++ by load_inline",
    "cupy": "CUDA C++ by cupy.RawKernel",
    "nvrtc": "CUDA C++ by cuda.core",
    "cuda": "a .cu file",
}
"""How kernels are handed in, by language."""

BUILTINS = _names(
    "Ellipsis False None NotImplemented True __debug__ abs all any ascii bin bool bytearray "
    "bytes callable chr classmethod complex dict divmod enumerate filter float format frozenset "
    "getattr hasattr hash hex id int isinstance issubclass iter len list map max min next "
    "object oct ord pow print property range repr reversed round set slice sorted staticmethod "
    "str sum super tuple type zip"
)
"""The functions of Python itself that may be used; its exceptions may be used, too."""

NAMES = _names("__doc__ __name__")
"""Names with two underscores that may be read."""

DEFINED = _names(
    "__abs__ __add__ __all__ __and__ __author__ __bool__ __call__ __contains__ __cuda_stream__ __doc__ "
    "__enter__ __eq__ __exit__ __floordiv__ __ge__ __getitem__ __gt__ __hash__ __init__ __int__ "
    "__float__ __index__ __iter__ __le__ __len__ __lt__ __matmul__ __mod__ __mul__ __ne__ "
    "__neg__ __next__ __or__ __post_init__ __pow__ __radd__ __repr__ __rmul__ __rsub__ "
    "__rtruediv__ __setitem__ __slots__ __str__ __sub__ __truediv__ __version__ __xor__"
)
"""Names with two underscores that a file may define."""

ATTRIBUTES = (
    Group("functions and classes", _names("__doc__ __init__ __name__ __qualname__ cache_clear cache_info")),
    Group("partial functions, properties", _names("args func keywords deleter getter setter")),
    Group("exceptions", _names("add_note args value")),
    Group("named tuples, enumerations", _names("_asdict _fields _make _replace name value")),
    Group(
        "PyTorch's tensors, beside its operators",
        _names(
            "H T backward bfloat16 bool byte char contiguous copy_ cpu cuda data data_ptr device dim "
            "double dtype element_size expand expand_as fill_diagonal_ float grad grad_fn half int "
            "is_contiguous is_cpu is_cuda is_leaf item itemsize layout long mH mT masked_fill_ nbytes "
            "ndim ndimension nelement new_empty new_empty_strided new_full new_ones new_tensor "
            "new_zeros numpy record_stream register_hook repeat requires_grad requires_grad_ reshape_as "
            "retain_grad shape short size storage_offset stride sum_to_size to tolist type type_as "
            "unfold unique values view view_as"
        ),
    ),
    Group(
        "types of elements, devices, streams",
        _names(
            "bits cuda_stream elapsed_time eps index is_complex is_floating_point is_signed major max "
            "max_threads_per_multi_processor min minor multi_processor_count name query record "
            "resolution shared_memory_per_block smallest_normal synchronize tiny total_memory "
            "wait_event wait_stream warp_size"
        ),
    ),
    Group(
        "modules of a network",
        _names(
            "add_module append apply buffers children eval extra_repr extend forward get_buffer "
            "get_parameter get_submodule insert load_state_dict modules named_buffers named_children "
            "named_modules named_parameters parameters register_buffer register_module "
            "register_parameter reset_parameters state_dict to train training weight bias in_features "
            "out_features embedding_dim num_embeddings normalized_shape eps p zero_grad"
        ),
    ),
    Group(
        "functions with a gradient",
        _names(
            "apply backward forward mark_dirty mark_non_differentiable needs_input_grad "
            "save_for_backward saved_tensors set_materialize_grads setup_context"
        ),
    ),
    Group(
        "Triton's kernels and configurations",
        _names(
            "arg_names best_config kwargs maxnreg nargs num_ctas num_stages num_warps pre_hook n_regs "
            "n_spills shared warmup"
        ),
    ),
    Group(
        "tensors, types and descriptors in kernels",
        _names(
            "T abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max "
            "atomic_min atomic_or atomic_xchg atomic_xor block_shape block_type broadcast_to cast cdiv "
            "ceil cos cumprod cumsum dtype element_ty erf exp exp2 expand_dims flip floor "
            "fp_mantissa_width gather get_block_shapes histogram int_bitwidth is_bf16 is_block is_bool "
            "is_floating is_fp16 is_fp32 is_fp64 is_fp8 is_int is_int1 is_int16 is_int32 is_int64 "
            "is_int8 is_int_signed is_int_unsigned is_ptr is_uint8 load log log2 logical_and logical_or "
            "max min permute primitive_bitwidth ravel reduce reshape rsqrt scalar scatter shape sigmoid "
            "sin sort split sqrt sqrt_rn store strides sum to trans type value view xor_sum"
        ),
    ),
)
"""What may be read of a value, beside methods of Python's own types and what the file itself defines."""

CHANGED = _names("data grad requires_grad training")
"""What may be changed of a value, beside what the file itself defines."""

_TYPES = (str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, slice, range)
_COLLECTIONS = (Counter, OrderedDict, defaultdict, deque, Fraction, property)
_OF_FILES = frozenset({"from_file", "frombuffer"})


@cache
def names(module: str) -> frozenset[str]:
    """The names that may be used of a module in the table; with ``ANY``, all of them may."""
    return frozenset(name for entry in MODULES[module] for name in _spelled(module, entry))


def _spelled(module: str, entry: str) -> Collection[str]:
    match entry:
        case "PyTorch's operators":
            return operators()
        case "its classes":
            return [name for name, value in _public(module) if isinstance(value, type)]
        case "its functions":
            return [
                name
                for name, value in _public(module)
                if callable(value) and not isinstance(value, type) and "torch_function" not in name
            ]
    return (entry,)


def _public(module: str) -> list[tuple[str, object]]:
    loaded = importlib.import_module(module)
    pairs = [(name, getattr(loaded, name)) for name in dir(loaded) if not name.startswith("_")]
    return [(name, value) for name, value in pairs if not isinstance(value, ModuleType)]


@cache
def operators() -> frozenset[str]:
    """The operators of PyTorch, by name, without those that take files or memory."""
    bound = importlib.import_module("torch")._C._VariableFunctions  # noqa: SLF001 - there is no other list
    return frozenset(name for name in dir(bound) if not name.startswith("_")) - _OF_FILES


@cache
def attributes() -> frozenset[str]:
    """The attributes that may be read of any value."""
    tensor = dir(importlib.import_module("torch").Tensor)
    in_place = {name for name in tensor if name.endswith("_") and name.rstrip("_") in operators()}
    methods = {name for kind in (*_TYPES, *_COLLECTIONS) for name in dir(kind) if not name.startswith("_")}
    listed = {name for group in ATTRIBUTES for name in group.names}
    return frozenset(operators() | in_place | methods | listed) - {"format_map"}


@cache
def functions() -> frozenset[str]:
    """Python's own functions, types and exceptions that may be used."""
    raised = {
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    return frozenset({*BUILTINS, *raised})
