"""A GPU in software: it runs the code that NVIDIA's compiler makes of our kernels, and checks every access to memory.

numba-cuda's simulator runs the Python of a kernel, without a compiler, warps or shuffles. Here the compiler's PTX is
executed, 32 threads to a warp, in the arithmetic of a GPU; only approximate instructions may differ in their last bits.
Like NVIDIA's compute-sanitizer, it reports accesses beyond an array, misaligned ones, and races: two threads that use
the same memory without waiting for each other, at least one of them to write. It also counts instructions, so that a
change can be judged where there is no GPU.

| module | what it has |
|---|---|
| `ptx` | the text of a kernel, as instructions of the machine |
| `operations` | what each instruction computes |
| `memory` | the arrays of a launch, and who used which part of them when |
| `machine` | blocks, warps, branches, barriers, shuffles |
| `device` | takes the place of the GPU in numba-cuda |
"""
