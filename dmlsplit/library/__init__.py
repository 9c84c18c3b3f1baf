"""The real libraries, asked: DirectML about any operator or graph, ONNX Runtime about a model.

    import dmlsplit as dml

    dml.library.add("torch-directml-0.2.5.dev240914")
    print(dml.library.ask(dml.loads(text), directml="torch-directml-0.2.5.dev240914"))

DirectML judges descriptors on the CPU. A program without a GPU, of which the sources come with the package, loads
a build over a Direct3D 12 device that is none: builds for Linux as they are, builds for Windows under wine. Nothing is
fetched unasked, and nothing of Microsoft's is in the package.
"""
