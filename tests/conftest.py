"""Without a GPU, Triton's kernels run in its interpreter; it must know before it is imported."""

import os
import shutil

if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("TRITON_INTERPRET", "1")
