"""Many runs on one GPU, one thread each, with the traces of the CPU."""
