# SPDX-License-Identifier: BSD-2-Clause
"""Names of kernels: every launch of the stand-ins of CUDA's libraries under the right name, below
the right Python line, whether pyprofd was there when the handles were made or not."""
import contextlib
import os
import shutil
import struct
import subprocess

import harness
import test_cuda
import test_probes

CALLS = test_cuda.CALLS
SHOWN = test_cuda.SHOWN
LAUNCHERS = {"vectorAdd": "launch_vector_add", "fake::matmul<float, 16>": "launch_matmul",
             "fake::nms_kernel_impl": "launch_nms", "reduce_rows": "launch_reduce_rows",
             "softmax": "launch_softmax", "fakeblas::sgemm_128x64": "launch_sgemm"}


def launches_together(programs, python=None):
    """Of programs (mode, fakes, arguments) under one pyprofd: of each its part of a profile of what
    it launches after pyprofd has attached, what it counted itself, pyprofd's words, and the
    program's source."""
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(harness.Target("cuda_names.py", mode, *arguments,
                                                       python=python, env={"FAKES": fakes}))
                    for mode, fakes, *arguments in programs]
        process = test_cuda.started([program.pid for program in programs])
        test_cuda.await_links(process)
        counted = [test_probes.go(program) for program in programs]
        profile, said = test_cuda.ended(process)
        with open(programs[0].path("cuda_names.py"), encoding="utf-8") as file:
            source = file.read().splitlines()
    return [(test_cuda.of_process(profile, program.pid), one, said, source)
            for program, one in zip(programs, counted)]


def launches(mode, fakes, python=None):
    return launches_together([(mode, fakes)], python)[0]


def by_kernel(profile):
    return {kernel: values[CALLS]
            for (kernel,), values in test_cuda.sums(profile, "kernel").items() if kernel}


def expect_all_named(profile, counted, said, source):
    expected = {SHOWN[name]: times for name, times in counted.items()}
    assert by_kernel(profile) == expected, (by_kernel(profile), counted, said)
    assert "kernels_unnamed" not in said, said
    walked = 0
    for sample in profile.samples:
        kernel = sample.labels.get("kernel")
        if not kernel:
            continue
        frames = [frame.name for frame in sample.frames]
        assert frames[0] == kernel and sample.frames[0].module == "[gpu]", sample
        lines = [frame.line for frame in sample.frames
                 if frame.kind == "python" and frame.name == LAUNCHERS[kernel]]
        if len(frames) == 2:
            continue  # [other stacks]
        walked += sample.values[CALLS]
        assert len(lines) == 1, (kernel, frames)
        called = source[lines[0] - 1]
        assert "cuda.run(" in called or "fakeblas_sgemm(" in called, (kernel, called)
    assert walked == sum(expected.values()), (walked, expected)


# ---------------------------------------------------------------- every variant, late and early

# Those of CUDA 12 have their host functions out of the GOT.
VARIANTS = [("", "libcudart.so.13", "libfakekernels.so"),
            ("", "libcudart.so.12", "libfakekernels12.so"),
            ("", "libcudart.abc123.so.13", "libfakekernels.abc123.so"),
            ("stripped", "libcudart.so.13", "libfakekernels.so"),
            ("stripped", "libcudart.so.12", "libfakekernels12.so"),
            ("endbr", "libcudart.so.13", "libfakekernels.so"),
            ("nofp", "libcudart.so.13", "libfakekernels.so")]


def test_kernels_of_each_build_are_named_by_their_stubs_or_by_the_driver():
    """late: their handles are older than pyprofd; early: it has seen them made."""
    for seen in launches_together(
            (mode, harness.need_fakes(directory), cudart, kernels)
            for mode in ("late", "early") for directory, cudart, kernels in VARIANTS):
        expect_all_named(*seen)


def test_each_launch_has_its_python_line(python):
    expect_all_named(*launches("late", harness.need_fakes("stripped"), python=python))


def pythons():
    return [(i.label, i) for i in harness.interpreters() if i.version >= (3, 8) and not i.root]


test_each_launch_has_its_python_line.cases = pythons
test_each_launch_has_its_python_line.few = harness.newest


# ---------------------------------------------------------------- handles

def test_handles_of_one_kernel_are_one_and_names_may_be_anything():
    profile, counted, said, _ = launches("handles", harness.need_fakes())
    found = by_kernel(profile)
    times = counted["plain"]
    assert found.pop("fake::add") == counted["_ZN4fake3addEPfi"] == 3 * times, (found, said)
    assert found.pop("plain") == times, found
    assert found.pop("_ZZZ") == times, found
    assert found.pop("\\x1b[31m\\n") == times, found
    cut = [name for name in found if name.startswith("_Z4abcd4abcd")]
    assert len(cut) == 1 and cut[0].endswith("...") and len(cut[0]) == 4098, [len(c) for c in cut]
    assert found.pop(cut[0]) == times
    longer, = found
    assert "part000" in longer and "part199" in longer and found[longer] == times, found
    assert "kernels_unnamed" in said, said


def test_a_program_that_calls_the_driver_itself_has_handles_not_its_functions_names():
    profile, counted, said, _ = launches("named", harness.need_fakes())
    (handle, times), = counted.items()
    (kernel, calls), = by_kernel(profile).items()
    assert kernel.startswith("kernel@%s (" % handle) and calls == times, (kernel, counted)
    assert kernel.endswith(")") and ".so" in kernel, kernel
    assert "1 kernels_unnamed" in said, said


def test_a_function_that_the_runtime_launches_is_called_as_its_stripped_file_registers_it():
    fakes = harness.need_fakes("stripped")
    symbols = subprocess.run(["nm", os.path.join(harness.need_fakes(), "libfakeblas.so")],
                             check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    offset, = [line.split()[0] for line in symbols.splitlines() if line.endswith(" sgemm_128x64")]
    directory = test_cuda.runtime_alone()
    with harness.Target("cuda_names.py", "runtime", offset, directory=directory,
                        env={"FAKES": fakes}) as program:
        process = test_cuda.started(program.pid)
        test_cuda.await_links(process, 1)
        counted = test_probes.go(program)
        profile, said = test_cuda.ended(process)
    assert by_kernel(profile) == {SHOWN[name]: n for name, n in counted.items()}, (profile, said)


# ---------------------------------------------------------------- hostile files

def garbled(directory, seed):
    """The stand-ins, with section headers of the kernels' library that say anything: what is mapped
    stays."""
    path = os.path.join(directory, "libfakekernels.so")
    with open(path, "r+b") as file:
        head = file.read(64)
        offset, = struct.unpack_from("<Q", head, 40)
        file.seek(0, os.SEEK_END)
        size = file.tell()
        file.seek(offset)
        count = struct.unpack_from("<H", head, 60)[0]
        for i in range(1, count):
            # sizes that are those of larger files, addresses of others' sections
            file.seek(offset + 64 * i + 16)
            file.write(struct.pack("<QQQ", seed * i * 4096 % size, seed * i * 512 % size,
                                   size * (1 + seed * i % 3)))
    return directory


def test_a_library_that_lies_about_its_sections_is_no_harm():
    directories = []
    for seed in (3, 7):
        directory = harness.temporary()
        for name in os.listdir(harness.need_fakes()):
            path = os.path.join(harness.need_fakes(), name)
            if os.path.isfile(path):
                shutil.copy(path, directory)
        subprocess.run(["strip", os.path.join(directory, "libfakekernels.so")], check=False)
        directories.append(garbled(directory, seed))
    for profile, counted, said, _ in launches_together(("late", one) for one in directories):
        found = by_kernel(profile)
        assert sum(found.values()) == sum(counted.values()), (found, counted, said)
        right = {SHOWN[name]: times for name, times in counted.items()}
        for kernel, calls in found.items():
            assert kernel.startswith("kernel@0x") or right[kernel] == calls, (found, counted)
