"""What the scripts of benchmarks/ share: cases, peers, timing, reports."""
