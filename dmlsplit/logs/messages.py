"""The known messages: one row each; the first row that matches a line is used.

Each names a public thread with such a message. Its meaning is taken from there, from ONNX Runtime's sources, or from
the observed behaviour of DirectML's builds.
"""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple

_ORT: Final = "https://github.com/microsoft/onnxruntime"
_PLACE: Final = r"\.(?:cpp|h|cc)\(\d+\)"


class Asks(enum.Enum):
    """What a model at hand can tell about a message."""

    CREATION = "whether a session is made of it, and what is wrong in its graphs"
    PLACEMENT = "where its nodes run"
    CAPTURE = "whether its session can be captured"


class Message(NamedTuple):
    """A message: `pattern` is searched in a line, the line must contain one of the HRESULTs `codes` (if `codes` is
    empty, it need not contain any). `next` is a command, in which {model} and {version} are the user's; "" if no
    command of dmlsplit helps. `error`: the message means that something fails."""

    id: str
    pattern: str
    codes: tuple[int, ...]
    meaning: str
    source: str
    next: str = ""
    asks: Asks | None = None
    advice: str = ""
    error: bool = True


_CHECK: Final = "dmlsplit check {model} --onnxruntime {version}"
_NOT_THE_MODEL: Final = "not a verdict on the model: the same model may run on another device or driver"

MESSAGES: Final = (
    Message(
        "graph-description-refused",
        r"GraphDescValidator" + _PLACE,
        (),
        "DirectML refuses the graph that ONNX Runtime fused, before it compiles it: an edge, an input or an output of "
        "the graph is wrong, as where a node's outputs are not read",
        f"{_ORT}/issues/20575",
        _CHECK,
        Asks.CREATION,
        "ep.dml.disable_graph_fusion = 1 in the session's configuration shows whether the graph is at fault",
    ),
    Message(
        "tensor-refused",
        r"TensorValidator" + _PLACE + r"|TensorDescValidator" + _PLACE,
        (),
        "DirectML refuses a tensor of an operator: its data type, its number of dimensions, its sizes or strides",
        f"{_ORT}/issues/13330",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "output-sizes-differ",
        r"InferAndVerifyOutputSizes",
        (),
        "the sizes of a node's output are not those that its inputs lead to: the model states others, or the kernel of "
        "DirectML computes others",
        f"{_ORT}/issues/5197",
        _CHECK,
        Asks.CREATION,
        "remove the shapes that the file states for values inside the model, and let ONNX infer them again",
    ),
    Message(
        "provider-level-missing",
        r"dml_provider_factory" + _PLACE,
        (0x887A0004,),
        "the DirectML.dll that was loaded is older than this ONNX Runtime needs, or the device cannot run it: often "
        "the one in System32 was loaded, since none lies beside the program",
        f"{_ORT}/issues/21432",
        "dmlsplit check {model} --onnxruntime {version} --windows 10-22H2",
        None,
        "put the DirectML.dll of the package Microsoft.AI.DirectML beside the program; docs/concepts.md says which "
        "Windows has which",
    ),
    Message(
        "adapter-is-software",
        r"dml_provider_factory" + _PLACE,
        (0x80070057,),
        "the adapter of this number is one of software, such as the Microsoft Basic Display Adapter of a server or a "
        "virtual machine, which the provider does not take",
        f"{_ORT}/issues/9708",
        "",
        None,
        "another device_id, or a driver for the GPU",
    ),
    Message(
        "adapter-not-found",
        r"dml_provider_factory" + _PLACE,
        (0x887A0002,),
        "there is no adapter of this number: device_id counts from 0, in the order of IDXGIFactory::EnumAdapters",
        "https://github.com/w-okada/voice-changer/issues/1379",
        "",
        None,
        "device_id 0, or one that Direct3D lists",
    ),
    Message(
        "no-adapter",
        r"DirectML device enumeration: found 0 compatible adapters",
        (),
        "no GPU of this machine, with its driver, has what Direct3D 12 needs: old generations have not",
        "https://github.com/microsoft/DirectML/issues/329",
        "",
        None,
        "a newer driver; without one the CPU",
    ),
    Message(
        "webnn-context",
        r"'createContext' on 'ML': DirectML: ",
        (),
        "the browser makes no WebNN context on DirectML here: it wants feature level 4_0, hence Windows 11 21H2, and "
        "a device and driver that are not on its list of blocked ones",
        "https://github.com/webmachinelearning/webnn/issues/701",
        "",
        None,
        "docs/concepts.md says which Windows has which level; a newer driver, above all of an NPU",
    ),
    Message(
        "allocation-failed",
        r"There is not enough GPU video memory available|allocator DmlAllocato|\(DmlAllocator\) ran out of memory|"
        r"DML allocator out of memory",
        (),
        "the framework's allocator gets no more memory of the device",
        "https://github.com/microsoft/DirectML/issues/287",
        "",
        None,
        "a smaller batch, smaller inputs, another process for each model",
    ),
    Message(
        "torch-operator-on-the-cpu",
        r"not currently supported on the DML backend and will fall back to run on the CPU",
        (),
        "torch-directml has no kernel for this operator: its tensors are copied to the CPU and back at each call",
        "https://github.com/microsoft/DirectML/issues/592",
        "",
        None,
        "a newer torch-directml may have a kernel",
        error=False,
    ),
    Message(
        "torch-tensor-elsewhere",
        r"unbox expects Dml at::Tensor|weight type \(PrivateUse1\w*\) should be the same",
        (),
        "a tensor of this call is not on DirectML's device, the others are",
        "https://github.com/microsoft/DirectML/issues/442",
        "",
        None,
        "send model and inputs to torch_directml.device()",
    ),
    Message(
        "torch-device-unknown",
        r"(?i)but got: ?privateuse|device type privateuseone|privateuseone is not supported",
        (),
        "this function of PyTorch, or of the program, knows its devices by name; DirectML's, 'privateuseone', is none "
        "of them",
        "https://github.com/pytorch/pytorch/issues/95734",
        "",
        None,
        "let the CPU do this step, or another function that takes any device",
    ),
    Message(
        "torch-type",
        r"dml_util\.cc:\d+\] Invalid or unsupported data type",
        (),
        "DirectML has no such element type: BFloat16 and complex numbers are none of its types",
        "https://github.com/microsoft/DirectML/issues/688",
        "",
        None,
        "load the model as float16 or float32",
    ),
    Message(
        "no-doubles",
        r"GPU device does not support Double \(Float64\)",
        (),
        "the GPU has no operations of 64-bit floats (DoublePrecisionFloatShaderOps), and some value is one: a number "
        "of Python becomes a Float64",
        "https://github.com/microsoft/DirectML/issues/396",
        "",
        None,
        "float32 for all tensors and scalars",
    ),
    Message(
        "operator-not-created",
        r"CHECK failed:.{0,80}dml_device->CreateOperator|compilation_delegate_dml\.cc\(\d+\)\] Failed creating",
        (),
        "DirectML refuses an operator that a framework makes of its own: a type, a number of dimensions or a size",
        "https://github.com/microsoft/DirectML/issues/306",
        "dmlsplit layer install FOLDER",
        None,
        "the layer beneath the program says which operator and which rule",
    ),
    Message(
        "plugin-not-loaded",
        r"tfdml_plugin\.dll not found",
        (),
        "tensorflow-directml-plugin does not fit the installed TensorFlow: it was built for tensorflow-cpu 2.10",
        "https://github.com/microsoft/tensorflow-directml-plugin/issues/331",
        "",
        None,
        "install tensorflow-cpu 2.10",
    ),
    Message(
        "sizes-of-a-buffer",
        r"OrtValue shape verification failed",
        (),
        "an output that the program bound has other sizes than the node gives: onnxruntime-genai without "
        "past_present_share_buffer has it",
        "https://github.com/microsoft/onnxruntime-genai/issues/863",
        "",
        None,
        "set past_present_share_buffer to true for DirectML",
    ),
    Message(
        "symbol-of-two-sizes",
        r"Shape mismatch attempting to re-use buffer",
        (),
        "one name stands for two sizes in the model's shapes, or a size is declared that does not come",
        f"{_ORT}/issues/10148",
        _CHECK,
        Asks.CREATION,
        "declare open sizes as open, each with a name of its own",
    ),
    Message(
        "no-model",
        r"Protobuf parsing failed",
        (),
        "the file is no model in protobuf's binary form: a pointer of git lfs, protobuf's text form, or cut short",
        f"{_ORT}/issues/10525",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "entry-point-missing",
        r"(?i)AppendExecutionProvider_DML['\"\u2019]?.{0,60}(?:not found|entry point|in DLL|in shared library)",
        (),
        "the onnxruntime.dll that was loaded has no DirectML provider: it is of another package, or of another build",
        f"{_ORT}/issues/4941",
        "",
        None,
        "the package Microsoft.ML.OnnxRuntime.DirectML alone, and its DLL beside the program",
    ),
    Message(
        "run-by-two-threads",
        r"Assertion failed: .{0,200}(?:ReadbackHeap|PooledUploadHeap|BucketizedBufferAllocator)\.cpp",
        (),
        "two threads run one session at a time, which DirectML's provider does not support",
        f"{_ORT}/issues/17686",
        "",
        None,
        "one thread at a time, or a session for each",
    ),
    Message(
        "device-unsupported",
        r"",
        (0x887A0004,),
        "the device or its driver does not do what it was asked for, as NPUs do for models that they were not made for",
        "https://github.com/microsoft/DirectML/issues/659",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "device-removed",
        r"",
        (0x887A0005,),
        "the device was removed while it worked: a dispatch took longer than Windows allows (two seconds), memory ran "
        "out, the driver failed or was updated; ID3D12Device::GetDeviceRemovedReason says which",
        f"{_ORT}/issues/22700",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "device-hung",
        r"",
        (0x887A0006,),
        "the device did not answer in time and was reset by Windows (TDR), whatever the text says of invalid commands: "
        "a dispatch that is too long for this device, or a fault of the driver",
        f"{_ORT}/pull/28495",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "device-reset",
        r"",
        (0x887A0007, 0x887A0020),
        "the device was reset since another program hung it, or the driver failed; the session has to be made anew",
        f"{_ORT}/pull/28495",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "device-call-invalid",
        r"GetDeviceRemovedReason|DmlExecutionProvider|DirectML|dxgi|DXGI|d3d12|D3D12",
        (0x887A0001,),
        "a call was invalid for Direct3D, and the device is lost: memory that ran out is a common cause",
        "https://github.com/microsoft/tensorflow-directml-plugin/issues/359",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "device-lost",
        r"GetDeviceRemovedReason\(\)",
        (),
        "the program asked whether the device was removed, and it was: the code, if there is one, says why",
        "https://github.com/microsoft/tensorflow-directml/pull/30",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "agility-sdk-missing",
        r"D3D12SDKPath|D3D12Core\.dll.{0,80}(?:not found|missing|not be|fail)|"
        r"(?:load|find|locate).{0,80}D3D12Core\.dll",
        (),
        "D3D12Core.dll of the Agility SDK is not where the program says it is (D3D12SDKPath)",
        "https://github.com/microsoft/onnxruntime-genai/issues/1054",
        "",
        None,
        "a matter of installation, not of the model",
    ),
    Message(
        "access-violation",
        r"(?i)directml(?:\.dll)?\b",
        (0xC0000005,),
        "the process ended in DirectML.dll, which read or wrote memory that it may not: the wrong DirectML.dll for "
        "this ONNX Runtime, a fault of the driver, or a descriptor that DirectML does not survive",
        f"{_ORT}/issues/2378",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "access-violation-in-dotnet",
        r"System\.AccessViolationException",
        (),
        "native code read or wrote memory that it may not: with DirectML's provider mostly two threads in one session, "
        "or an input that was freed while Run used it",
        f"{_ORT}/issues/16706",
        "",
        None,
        "a session for each thread; see which onnxruntime.dll and DirectML.dll the process has loaded",
    ),
    Message(
        "out-of-memory",
        r"",
        (0x8007000E,),
        "memory of the device ran out, or a resource is larger than the device allows",
        "https://github.com/huggingface/diffusers/issues/791",
        "",
        None,
        "smaller inputs, a smaller batch, enable_mem_pattern = false, sequential execution",
    ),
    Message(
        "kernel-not-created",
        r"AbiCustomRegistry" + _PLACE,
        (0x80070057,),
        "DirectML refuses an operator when ONNX Runtime makes its kernel, as the session is created or, where sizes "
        "are open until then, at the first Run",
        f"{_ORT}/issues/21583",
        _CHECK,
        Asks.CREATION,
        "the same line comes of a DirectML.dll that is older than the package's: see which one the process has loaded",
    ),
    Message(
        "fused-graph-refused",
        r"(?:FusedGraphKernel|GraphKernelHelper|DmlGraphFusionHelper|DmlGraphFusionTransformer|DmlRuntimeFusedGraphKernel)"
        + _PLACE,
        (0x80070057,),
        "DirectML does not compile, or does not run, the graph that ONNX Runtime fused several nodes into",
        f"{_ORT}/issues/20742",
        _CHECK,
        Asks.CREATION,
        "ep.dml.disable_graph_fusion = 1 in the session's configuration shows whether the graph is at fault",
    ),
    Message(
        "kernel-fails-at-run",
        r"(?:MLOperatorAuthorImpl|DmlExecutionProvider\\src\\ExecutionProvider|DmlOperator\w*)" + _PLACE,
        (0x80070057,),
        "the kernel of a node on DirectML fails as it runs: DirectML refuses the operator with the sizes of this Run, "
        "or an input of the node is not what the kernel expects",
        f"{_ORT}/issues/20464",
        "dmlsplit check {model} --onnxruntime {version} --shape INPUT:SIZES",
        Asks.CREATION,
        "give the sizes of the Run that fails; run one session from one thread at a time",
    ),
    Message(
        "interface-missing",
        r"DmlExecutionProvider|(?i:directml)",
        (0x80004002,),
        "Windows or the DirectML.dll that was loaded is older than the caller: harmless where it is only logged, since "
        "DirectML takes DXGI in place of DXCore before Windows 10 2004",
        "https://github.com/microsoft/DirectML/issues/89",
        "",
        None,
        "where it ends the session: see which DirectML.dll the process has loaded",
    ),
    Message(
        "unspecified",
        r"DmlExecutionProvider|(?i:directml)",
        (0x80004005,),
        "DirectML, Direct3D or the driver fails without a reason; their debug layers, turned on by the Graphics Tools "
        "of Windows, write one to the debugger",
        f"{_ORT}/issues/3345",
        "dmlsplit ask OPERATOR.json --explain",
        None,
    ),
    Message(
        "catastrophic",
        r"DmlExecutionProvider|(?i:directml)|Catastrophic",
        (0x8000FFFF,),
        "Direct3D or the driver is in a state from which a process does not recover; it is gone in a new process",
        f"{_ORT}/issues/22815",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "capture-refused",
        r"cannot use the graph capture feature",
        (),
        "the session was told to capture its graph, and not all of its nodes are on the provider",
        f"{_ORT}/issues/24937",
        "dmlsplit check {model} --onnxruntime {version} --require-capture",
        Asks.CAPTURE,
    ),
    Message(
        "capture-with-cpu-nodes",
        r"has shape massaging nodes that will execute on CPU",
        (),
        "nodes on the CPU compute sizes, and a captured graph is replayed with the sizes of its first run",
        "https://github.com/microsoft/onnxruntime-genai/issues/848",
        _CHECK,
        Asks.CAPTURE,
        error=False,
    ),
    Message(
        "cpu-fallback-disabled",
        r"assigned to the default CPU EP, (?:but fallback to CPU EP|which) has been explicitly disabled",
        (),
        "session.disable_cpu_ep_fallback = 1 is set, and some nodes have no kernel but the CPU's",
        f"{_ORT}/pull/16016",
        "dmlsplit check {model} --onnxruntime {version} --require-dml 100",
        Asks.PLACEMENT,
    ),
    Message(
        "nodes-on-the-cpu",
        r"Some nodes were not assigned to the preferred execution providers",
        (),
        "part of the model runs on the CPU: nodes that compute sizes, which is meant so, or operators, types and "
        "opsets that the provider has no kernel for",
        f"{_ORT}/issues/16863",
        _CHECK,
        Asks.PLACEMENT,
        error=False,
    ),
    Message(
        "verbose-output-advised",
        r"Rerunning with verbose output on a non-minimal build will show node assignments",
        (),
        "goes with the line about nodes that were not assigned; 'dmlsplit check --onnxruntime' shows the same without "
        "a run",
        f"{_ORT}/issues/23027",
        _CHECK,
        Asks.PLACEMENT,
        error=False,
    ),
    Message(
        "nodes-placed",
        r"Node\(s\) placed on \[\w+\]|All nodes placed on \[\w+\]",
        (),
        "how many nodes a provider has; the lines below name them",
        f"{_ORT}/issues/21013",
        _CHECK,
        Asks.PLACEMENT,
        error=False,
    ),
    Message(
        "copies-added",
        r"\d Memcpy nodes are added to the graph|Add Memcpy(?:From|To)Host (?:after|before) ",
        (),
        "tensors are copied between the device and the CPU, since neighbouring nodes run on different ones",
        f"{_ORT}/pull/18032",
        _CHECK,
        Asks.PLACEMENT,
        error=False,
    ),
    Message(
        "memory-pattern",
        r"(?i)mem(?:ory)? pattern (?:enabled )?(?:is not supported|should be disabled) .*DML",
        (),
        "enable_mem_pattern has to be false, and the execution sequential, with DirectML's provider; ONNX Runtime sets "
        "it itself and goes on",
        f"{_ORT}/issues/6970",
        error=False,
    ),
    Message(
        "provider-not-available",
        r"provider 'DmlExecutionProvider' is not in available provider names",
        (),
        "this ONNX Runtime was built without DirectML's provider: the package onnxruntime is installed in place of "
        "onnxruntime-directml, or over it; all nodes run on the CPU",
        "https://github.com/microsoft/Llama-2-Onnx/issues/25",
        "",
        None,
        "uninstall both packages, then install onnxruntime-directml alone",
    ),
    Message(
        "library-not-loaded",
        r"LoadLibrary failed with error 126|DLL load failed while importing|Error loading .{0,200} which is missing",
        (),
        "a DLL, or one that it needs, is not found in the folders that Windows searches",
        f"{_ORT}/issues/12269",
        "",
        None,
        "a matter of installation, not of the model",
    ),
    Message(
        "kernel-not-found",
        r"Failed to find kernel for|Could not find an implementation for",
        (),
        "no provider of this session has a kernel for an operator with this version and these types; the CPU is the "
        "last that is asked",
        f"{_ORT}/issues/11476",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "opset-too-new",
        r"guarantees\*? support for models stamped with official released onnx opset versions",
        (),
        "the model's opset is newer than this ONNX Runtime knows",
        f"{_ORT}/issues/5905",
        "dmlsplit legalize {model} --onnxruntime {version} -o FIXED.onnx",
        Asks.CREATION,
    ),
    Message(
        "ir-version-too-new",
        r"Unsupported model IR version",
        (),
        "the file's ir_version is newer than this ONNX Runtime reads; most models are the same with a lower one",
        f"{_ORT}/issues/23602",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "operator-unknown",
        r"No Op registered for|is not a registered function/op",
        (),
        "the model has an operator that ONNX and this ONNX Runtime do not define: of a plug-in, of a domain that is "
        "not loaded, or of a newer opset",
        f"{_ORT}/issues/5643",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "model-invalid",
        r"This is an invalid model|\bINVALID_GRAPH\b",
        (),
        "the model breaks ONNX's rules, whatever provider it is for: the text behind it names the node and the tensor",
        f"{_ORT}/issues/1760",
        _CHECK,
        Asks.CREATION,
    ),
)

PATTERNS: Final = tuple(re.compile(message.pattern) for message in MESSAGES)
BY_ID: Final = {message.id: message for message in MESSAGES}
