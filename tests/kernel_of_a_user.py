"""A kernel as a user would add it: one module, as docs/kernels.md says."""

from sketchridge.kernels import Radial


def rational_quadratic(s, xp, shape):
    """(1 + s/2a)^−a."""
    return (1 + s / (2 * shape)) ** -shape


def rational_quadratic_slope(s, xp, shape):
    """−(1 + s/2a)^(−a−1)/2."""
    return -0.5 * (1 + s / (2 * shape)) ** (-shape - 1)


def RationalQuadratic(bandwidth=None, shape=1.5):
    return Radial(
        rational_quadratic,
        rational_quadratic_slope,
        fused="kernel_of_a_user_triton:rational_quadratic",
        bandwidth=bandwidth,
        parameters=(shape,),
    )
