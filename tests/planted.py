"""A folder of a stranger's that nothing may be imported from."""

import sys


def plant(folder):
    """Python modules of all names that anything could import: each says that it was."""
    ours = (
        "click",
        "cffi",
        "_cffi_backend",
        "defusedxml",
        "dmlsplit",
        "google",
        "jinja2",
        "ml_dtypes",
        "numpy",
        "onnx",
    )
    others = ("pip", "rich", "setuptools", "sitecustomize", "usercustomize", "ensurepip")
    said = folder / "imported"
    for name in {*sys.stdlib_module_names, *ours, *others}:
        (folder / f"{name}.py").write_text(f"open({str(said)!r}, 'a').write(__name__ + '\\n')\n")
    return said
