"""The paper's sentences that make a claim, word for word, with their lines in its TeX file."""

from __future__ import annotations

__all__ = ["QUOTES"]

QUOTES: dict[str, tuple[str, str]] = {
    "consistent": ("92", "Our approach leads to a consistent estimator of the true variance"),
    "efficient": ("92", "while being computationally more efficient"),
    "optimal": (
        "92",
        "Our variance estimator is optimal for a large family of kernels, including cubic splines "
        "and Gaussian kernels",
    ),
    "cubic": (
        "97, 153, 375",
        "for n data points, the time and space complexity of kernel ridge regression (KRR) are of "
        "O(n³) and O(n²) respectively",
    ),
    "minimizer": (
        "135–144",
        "Thus, the KRR estimator is expressed as f̂(·) = Σ ω†_i K(·, X_i), where ω† = (K + λI)⁻¹y/n",
    ),
    "v1": (
        "147–150",
        "V1(x) = Var(ŷ(x)|X, x) = (σ²/n²) k(x)ᵀ(K + λI)⁻²k(x)",
    ),
    "binomial": (
        "157–160",
        "by the Binomial Inverse Theorem, we have (K + λI)⁻¹ = (1/λ)(I − K(λK + K²)⁻¹K)",
    ),
    "v2": (
        "165–172",
        "V2(x) = Var(ŷ(x)|X, x, S) = (σ²/(n²λ²)) k(x)ᵀ(I − KSᵀ(λSKSᵀ + SK²Sᵀ)⁻¹SK)²k(x)",
    ),
    "differs": (
        "174–180",
        "The variance V2 is different from the variance that could be derived from the results in "
        "[Yang et al.], which is: V3(x) = (σ²/n²) k(x)ᵀKSᵀ(λSKSᵀ + SK²Sᵀ)⁻¹SK²Sᵀ(λSKSᵀ + "
        "SK²Sᵀ)⁻¹SKk(x)",
    ),
    "sub_gaussian": (
        "192–196",
        "the i-th row S_i ∈ ℝⁿ is sub-Gaussian if for all u ∈ ℝⁿ, ⟨S_i, u⟩ are sub-Gaussian "
        "random variables, i.e., P{|⟨S_i, u⟩| > t} ≤ e·exp{−t²}. Matrices fulfilling the above "
        "condition include all matrices with independent sub-Gaussian entries as a particular "
        "instance",
    ),
    "neglectable": (
        "213",
        "In most cases, the smallest n − s_λ eigenvalues are neglectable due to a fast decaying "
        "rate of the eigenvalues",
    ),
    "subsampled": (
        "213",
        "as well as matrices constructed by randomly sub-sampling and rescaling the rows of a "
        "fixed orthonormal matrix",
    ),
    "inequality": (
        "241–251",
        "sup|V1(x) − V2(x)| = … ≤ (σ²/(nλ²))(T₁ + T₂)² where in the last step, we used Cauchy "
        "Schwarz inequality and the triangle inequality",
    ),
    "squares": ("259", "T₁² ≲ λ, T₂² ≲ λ"),
    "projected_minimizer": ("266", "which has the solution α̂ = (λSKSᵀ + SK²Sᵀ)⁻¹SKg*/n"),
    "first_part": ("282", "Clearly, in our construction G₁² = 0"),
    "decay_polynomial": (
        "339",
        "kernels with polynomially decaying eigenvalues μ_k ≍ k^(−2α) for α ≥ 1. Such kernels "
        "include the α-order periodic Sobolev space, for α = 2, which corresponds to the cubic "
        "spline",
    ),
    "decay_gaussian": (
        "341",
        "kernels with exponentially decaying eigenvalues μ_k ≍ e^(−αk^p) for p > 0, which include "
        "the Gaussian kernel with p = 2",
    ),
    "main_cost": (
        "378",
        "The main computational cost for randomly sketched KRR lies in computing the matrix "
        "multiplication of the sketch matrix and the kernel matrix. … The computational complexity "
        "of the matrix multiplication is of the order of O(mn₀²)",
    ),
    "blocks": (
        "398–408",
        "Then the matrix multiplication can be written as SK = […] = [S₁K₁ + S₁₂K₂₁, S₁K₁₂ + "
        "S₁₂K₂₂; S₂₁K₁ + S₂K₂₁, S₂₁K₁₂ + S₂K₂]",
    ),
    "significant": (
        "408",
        "The reduction of computational complexity is significant for large training sets",
    ),
    "memory": (
        "503",
        "Here we only use the randomly sketched KRR since the computational cost and required RAM "
        "of the original KRR is too large",
    ),
    "cost": (
        "184",
        "calculating (λSKSᵀ + SK²Sᵀ)⁻¹ only takes the order of O(mn²), which enhances the "
        "computational efficiency greatly",
    ),
    "v3": (
        "181–182",
        "Unfortunately, understanding the concentration of V3 seems highly nontrivial. However, "
        "our new proposed randomly sketched variance V2 … has nice concentration properties",
    ),
    "a1_i": (
        "201–213",
        "Set the projection dimension m ≥ d s_λ, where d is an absolute constant. … 1/2 ≤ "
        "λ_min(SU₁) ≤ λ_max(SU₁) ≤ 3/2 with probability greater than 1 − 2exp{−cm} … Random "
        "matrices satisfying Assumption A1 include sub-Gaussian random matrices",
    ),
    "a1_ii": (
        "210",
        "‖SU₂D₂^(1/2)‖ ≤ c′λ^(1/2) with probability greater than 1 − 2exp{−c″m}, where c′ and c″ "
        "are constants independent of n",
    ),
    "theorem": (
        "221–224",
        "sup |V1(x) − V2(x)| ≤ c′σ²/(nλ), where c and c′ are absolute constants independent of n",
    ),
    "probability": (
        "221",
        "Then with probability at least 1 − 2exp(−cm), with respect to the random choice of S, we "
        "have …",
    ),
    "s_polynomial": (
        "339",
        "we get the corresponding optimal lower bound for the projection dimension m ≳ s_λ ≍ "
        "n^(1/(2α+1))",
    ),
    "bound_polynomial": ("339", "|V1(x) − V2(x)| can be bounded by the order of O(n^(−1/(2α+1)))"),
    "s_gaussian": (
        "341",
        "kernels with exponentially decaying eigenvalues μ_k ≍ e^(−αk^p) for p > 0, which include "
        "the Gaussian kernel with p = 2. … we get the corresponding lower bound m ≥ s_λ ≍ "
        "(log(n))^(1/p)",
    ),
    "bound_gaussian": ("341", "|V1(x) − V2(x)| ≲ (log n)^(−1/p)"),
    "rate": (
        "349, 351",
        "the gap |V1 − V2| decreases with the rate O(1/n) as predicted by Theorem 1",
    ),
    "more_rows": (
        "349, 351",
        "Note that an increase of m leads to a smaller gap sup|V1(x) − V2(x)|",
    ),
    "no_gain_polynomial": (
        "349",
        "but this improvement is no longer obvious when m ≥ 1.2n^(1/(2α+1)) (or equivalently when "
        "c = 1), which is the optimal projection dimension demonstrated in Example 1",
    ),
    "no_gain_gaussian": (
        "351",
        "but this improvement is no longer obvious when m ≥ 1.2(log(n))^(1/2) (or equivalently "
        "when c = 1), which is the optimal projection dimension demonstrated in Example 2",
    ),
    "sigma": (
        "349, 351",
        "sup|V1(x) − V2(x)| increases almost linearly with respect to σ, which is consistent with "
        "our theory",
    ),
    "mn": (
        "353",
        "by using the randomly sketched predictive variance, the computational complexity is "
        "reduced from O(n³) to O(mn)",
    ),
    "attains": (
        "449, 489",
        "a simple algorithm that uses of our variance estimator and attains O(mn) time",
    ),
    "accuracy": ("353", "our variance estimator does not sacrifice statistical accuracy"),
    "hadamard": (
        "367",
        "the property in Assumption A1 might also hold for subsampled Fourier and Hadamard random "
        "matrices, but with a different relationship between m and s_λ. … for Hadamard random "
        "matrices, m > s_λ log n is needed for estimation of the (mean) prediction error … This "
        "might also likely happen in our predictive variance",
    ),
    "only_s": ("367", "For sub-Gaussian random matrices, we only need m > s_λ"),
    "update": (
        "408",
        "The computational complexity is thus reduced from O(m(n₀+n_s)²) to O(mn₀n_s)",
    ),
    "all_of_them": (
        "429",
        "If there is a small cluster of data with large scores, the deterministic method tends to "
        "add all of them into the training set initially",
    ),
    "extra_bias": (
        "429",
        "Suppose these data points are clustered together and outside of the majority of data "
        "points. Once they are all selected in the first few iterations, they may become the "
        "majority in the training set, and since the total size of labeled data is very small in "
        "early iterations, this will add an extra bias in the prediction",
    ),
    "similar": (
        "435",
        "with the increase of m, the randomly projected variance performs similar to the original "
        "conditional variance",
    ),
    "times": (
        "435",
        "the time for calculating the original variance for a new sample x takes 4.654s, but our "
        "proposed new randomly projected variance only takes 0.251s",
    ),
    "advantage": ("435", "showing the practical advantage of our method"),
    "smallest": (
        "460",
        "the randomly sketched active learning algorithm has the smallest mean squared error after "
        "30 iteration",
    ),
    "as_fast": (
        "460",
        "the mean squared error of randomly sketched active learning algorithm converges as fast "
        "as the active learning with the original KRR and random sampling with original KRR",
    ),
    "faster": (
        "486",
        "the original active learning method shows faster convergence rate",
    ),
    "lower_after_50": (
        "486",
        "and achieves lower MSE after 50 iterations compared to the random sampling algorithm",
    ),
    "unlikely": (
        "486",
        "it is unlikely to select the data outside the majority for the random sampling strategy",
    ),
    "minority": (
        "486",
        "the minority data with large prediction variance tends to be selected by the active "
        "learning algorithm",
    ),
    "comparable": (
        "486",
        "the randomly sketched active learning algorithm is comparable with active learning with "
        "the original KRR after 30 iterations and converges to a similar MSE",
    ),
    "flights": (
        "503",
        "the active learning algorithm achieves the RMSE of the full data faster than the uniform "
        "random sampling method",
    ),
    "weather": ("505", "As we can observe in Figure 5, our method compares favorably"),
    "weighted": (
        "429",
        "Thus we use the weighted random sampling strategy to ensure a substantial probability to "
        "select data points with large score while avoiding to select too many of them at once",
    ),
}
