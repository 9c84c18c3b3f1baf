"""The verdict in C, compiled and called: what it says of descriptors beside what the registry says."""

import ctypes
import subprocess
from pathlib import Path

import dmlsplit as dml
from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.descriptors.geometry import members_of
from dmlsplit.formats import cstruct
from dmlsplit.system.errors import DescriptorError
from dmlsplit.targets.target import target_of
from dmlsplit.verdicts.validation import evaluate

ROOT = Path(__file__).parents[1]


class Verdict(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("ok", ctypes.c_int32),
        ("crashes", ctypes.c_int32),
        ("hresult", ctypes.c_uint32),
        ("rule", ctypes.c_char_p),
        ("tensor", ctypes.c_char_p),
        ("member", ctypes.c_char_p),
        ("part", ctypes.c_uint64),
        ("index", ctypes.c_uint32),
    )


def load(folder):
    """The verdict's sources, compiled."""
    path = folder / "libverdict.so"
    names = ("dms_verdict*.c", "dms_overlap.c", "dms_rules.c", "dms_text.c")
    sources = [source for name in names for source in (ROOT / "csrc").glob(name)]
    command = [
        "cc",
        "-std=c11",
        "-O2",
        "-DDMS_TESTING",
        "-shared",
        "-fPIC",
        "-I",
        ROOT / "include",
        "-o",
        path,
        *sources,
    ]
    subprocess.run(command, check=True, timeout=300)
    found = ctypes.CDLL(str(path))
    found.dmlsplit_verdict_path.restype = ctypes.c_size_t
    found.dmlsplit_find_release.restype = ctypes.c_uint32
    found.dmlsplit_rule_summary.restype = ctypes.c_char_p
    return found


EachFault = ctypes.CFUNCTYPE(None, ctypes.POINTER(Verdict))


def answers(library, desc, numbers):
    """What C says of a descriptor by each target: ok, HRESULT or None, rule and path of the first fault, and of all."""
    struct = cstruct.write(desc)
    judge = (
        library.dmlsplit_validate_split
        if members_of(desc).kind is OperatorType.SPLIT
        else library.dmlsplit_validate_join
    )
    verdict, text = Verdict(ctypes.sizeof(Verdict)), ctypes.create_string_buffer(100)
    faults = []

    def rule_and_path(verdict):
        library.dmlsplit_verdict_path(verdict, text, ctypes.c_size_t(100))
        return (verdict.contents.rule or b"").decode(), text.value.decode()

    note = EachFault(lambda fault: faults.append(rule_and_path(fault)))
    hook = ctypes.c_void_p.in_dll(library, "dms_each_fault")
    hook.value = ctypes.cast(note, ctypes.c_void_p).value
    for number in numbers:
        faults.clear()
        assert judge(ctypes.c_void_p(struct.address), ctypes.c_uint32(number), ctypes.byref(verdict)) == 0
        hresult = None if verdict.crashes else verdict.hresult
        yield bool(verdict.ok), hresult, rule_and_path(ctypes.pointer(verdict)), sorted(faults)


def expected(desc, by):
    report = evaluate(desc, target_of(by))
    faults = [(d.rule, str(d.location)) for d in report.diagnostics if d.severity is Severity.ERROR]
    return report.ok, report.hresult, faults[0] if faults else ("", ""), sorted(faults)


def numbers_of(library, targets):
    found = [
        by if isinstance(by, dml.FeatureLevel) else library.dmlsplit_find_release(by.name.encode()) for by in targets
    ]
    assert all(found)
    return found


def is_struct(desc):
    """Whether C is told the same: of an array that is longer than its count only the counted entries are written."""
    members = members_of(desc)
    tensors = [t.desc for t in (members.whole, *(members.array or ())) if t is not None and t.desc is not None]
    arrays = [(array, t.dimension_count) for t in tensors for array in (t.sizes, t.strides) if array is not None]
    try:
        cstruct.write(desc)
    except DescriptorError:  # an array that is shorter than its count, a null tensor in an array of structs
        return False
    return all(len(array) == count for array, count in arrays)


def disagreements(library, descs, targets):
    compared, found = 0, []
    numbers = numbers_of(library, targets)
    for desc in descs:
        if not is_struct(desc):
            continue
        said = list(answers(library, desc, numbers))
        compared += 1
        for by, answer in zip(targets, said, strict=True):
            if answer != expected(desc, by):
                found.append((str(by), answer, expected(desc, by), desc))
    return compared, found
