"""The versions of ONNX Runtime."""

from __future__ import annotations

import pytest

import dmlsplit as dml
from dmlsplit.library.catalogue import onnxruntime_builds
from dmlsplit.onnxruntime import find_runtime, runtime_of_release, runtimes
from dmlsplit.onnxruntime.operators import recorded_versions
from dmlsplit.targets.runtime_versions import recorded_runtimes

ASKED_ONLY = ("1.19.0", "1.20.0", "1.21.0", "1.21.1", "1.23.0", "1.24.1", "1.24.2", "1.24.3")
"""The versions that were asked about models, but not about each operator."""


def test_versions_stand_in_order_and_once():
    keys = [runtime.key for runtime in runtimes()]
    assert keys == sorted(set(keys))


def test_every_version_has_a_release_that_judges_for_it():
    assert {runtime.release.platform for runtime in runtimes()} == {"windows"}


def test_what_a_version_loads_only_grows():
    for older, newer in zip(runtimes(), runtimes()[1:], strict=False):
        assert older.newest_opset <= newer.newest_opset
        assert older.newest_ir_version <= newer.newest_ir_version


def test_the_versions_of_the_live_test_are_observed():
    assert all(find_runtime(made.version).observed for made in onnxruntime_builds())


def test_a_version_is_observed_only_where_it_was_asked():
    own = [runtime.version for runtime in recorded_runtimes()]
    unasked = [version for version in own if version not in (*recorded_versions(), *ASKED_ONLY)]
    assert unasked == [], "not in the table of placements: they are `like` another version, or `observed=False`"


def test_the_first_package_of_each_version_is_in_the_row_of_its_directml():
    """The rows are those of dmlsplit/targets/releases.py."""
    shipped = {f"{each.packages[0]}-{each.version}": each.directml for each in runtimes()}
    assert {name: dml.find_release(name).directml for name in shipped} == shipped


def test_like_is_an_observed_version_with_the_same_directml():
    for runtime in runtimes():
        if runtime.like:
            other = find_runtime(runtime.like)
            assert other.observed
            assert not other.like
            assert (other.directml, other.newest_opset) == (runtime.directml, runtime.newest_opset)


@pytest.mark.parametrize("name", ["1.24.4", "onnxruntime 1.24.4", "onnxruntime-directml-1.24.4", "ORT 1.24.4 "])
def test_a_version_is_found_by_name(name):
    assert find_runtime(name).version == "1.24.4"
    assert find_runtime(find_runtime(name)) is find_runtime(name)


@pytest.mark.parametrize("minor", dict.fromkeys(runtime.version.rpartition(".")[0] for runtime in runtimes()))
def test_a_version_without_a_patch_number_is_the_newest_patch(minor):
    newest = max((each for each in runtimes() if each.version.startswith(f"{minor}.")), key=lambda each: each.key)
    assert find_runtime(minor) is find_runtime(f"onnxruntime-directml-{minor}") is newest


@pytest.mark.parametrize("name", ["1", "1.2", "1.24.", "1.24.0", "24", "", "1.11"])
def test_what_is_no_minor_version_is_not_completed(name):
    with pytest.raises(ValueError, match="unknown version of ONNX Runtime"):
        find_runtime(name)


def test_an_unknown_version():
    with pytest.raises(ValueError, match=r"unknown version of ONNX Runtime '2.0'; known: 1.9.0, .*1.30.0"):
        find_runtime("2.0")
    with pytest.raises(TypeError):
        find_runtime(1.24)


@pytest.mark.parametrize(
    ("directml", "version"),
    [(runtimes()[-1].directml, runtimes()[-1].version), ("1.15.1", "1.19.2"), ("1.13.1", "1.17.3")],
    ids=["newest", "1.15.1", "1.13.1"],
)
def test_a_release_stands_for_the_newest_version_that_ships_it(directml, version):
    assert runtime_of_release(dml.find_release(directml)).version == version


def test_a_release_that_no_version_ships():
    assert runtime_of_release(dml.find_release("torch-directml-0.2.0.dev230426")) is None


@pytest.mark.parametrize("runtime", runtimes(), ids=lambda runtime: runtime.version)
def test_the_release_that_judges_is_the_one_inside(runtime):
    assert runtime.release.directml == runtime.directml


@pytest.mark.parametrize(
    ("trait", "first"),
    [
        ("constants_are_nodes", "1.18.0"),
        ("fuses_first", "1.20.0"),
        ("reads_half_epsilons", "1.30.0"),
        ("reads_overloads", "1.30.0"),
        ("ifs_read_sequences", "1.20.0"),
        ("folds_known_sizes", "1.30.0"),
        ("fuses_new_wheres", "1.30.0"),
        ("pads_any_window", "1.19.0"),
        ("pads_unpadded_windows", "1.20.0"),
        ("fuses_new_pads", "1.30.0"),
        ("fuses_new_convs", "1.30.0"),
        ("fuses_new_reshapes", "1.30.0"),
        ("removes_new_dropouts", "1.30.0"),
        ("removes_new_casts", "1.30.0"),
        ("captures_no_cpu_alone", "1.30.0"),
        ("gives_graphs_names", "1.30.0"),
        ("follows_axes", "1.30.0"),
        ("keeps_allowzero", "1.30.0"),
        ("compares_all_numbers", "1.30.0"),
        ("keeps_attentions", "1.21.0"),
        ("fuses_attentions", "1.23.0"),
        ("merges_reshapes", "1.21.0"),
        ("leaves_large_products", "1.21.0"),
        ("keeps_sizes_of_others", "1.30.0"),
        ("outer_lengths_are_known", "1.30.0"),
        ("maps_shared_inputs", "1.23.0"),
        ("reads_large_constants", "1.23.0"),
        ("refuses_recursion", "1.30.0"),
        ("activates_by_hard_swish", "1.30.0"),
        ("activations_in_any_case", "1.21.0"),
        ("checks_stored_tensors", "1.24.1"),
        ("follows_computed_sizes", "1.24.1"),
        ("transposes_empty_constants", "1.24.1"),
        ("fuses_new_products", "1.30.0"),
        ("normalizes_new_casts", "1.30.0"),
        ("checks_scales", "1.24.1"),
        ("checks_factors", "1.23.0"),
        ("adds_vectors_later", "1.30.0"),
        ("dequantizes_before_quantized_alone", "1.30.0"),
        ("dequantizes_scalars", "1.24.1"),
        ("quantizes_weights_behind_clips", "1.23.0"),
        ("quantizes_weights", "1.21.0"),
    ],
)
def test_the_first_version_with_a_trait(trait, first):
    assert next(runtime.version for runtime in runtimes() if getattr(runtime.traits, trait)) == first


@pytest.mark.parametrize(("operator", "first"), [("Gelu", "1.23.0"), ("Elu", "1.30.0")])
def test_the_first_version_that_moves_transposes_over_an_operator(operator, first):
    assert next(each.version for each in runtimes() if operator in each.traits.passed_by_transposes) == first


def test_what_a_version_infers_only_grows():
    assert next(runtime.version for runtime in runtimes() if not runtime.traits.uninferred) == "1.24.1"
    for older, newer in zip(runtimes(), runtimes()[1:], strict=False):
        assert older.traits.uninferred >= newer.traits.uninferred
