"""Planning on one GPU: sweeps over sparse models, with the certified bracket of the CPU."""
