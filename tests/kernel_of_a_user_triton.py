"""The profile of kernel_of_a_user.py once more, for Triton."""

import triton
import triton.language as tl


@triton.jit
def rational_quadratic(s, P: tl.constexpr):
    """(1 + s/2a)^−a."""
    return tl.exp(-P[0] * tl.log(1.0 + s / (2.0 * P[0])))
